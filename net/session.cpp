#include "net/session.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/beast/core/string.hpp>
#include <charconv>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/bug.hpp"
#include "net/log.hpp"

namespace ossa::net {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// How many reads a session may do in one go before other sessions get their turn.
constexpr unsigned turns_max = 64;
// A larger answer's memory is given back behind it.
constexpr std::size_t response_bytes_kept = std::size_t{256} << 10;
// How long a connection that never asked anything may still do so when the server ends.
constexpr auto last_chance = 1s;

SteadyPoint now() noexcept {
    return std::chrono::steady_clock::now();
}

std::string_view status_line(unsigned status) noexcept {
    switch (status) {
        case 200: return "HTTP/1.1 200 OK\r\n";
        case 204: return "HTTP/1.1 204 No Content\r\n";
        case 400: return "HTTP/1.1 400 Bad Request\r\n";
        case 401: return "HTTP/1.1 401 Unauthorized\r\n";
        case 403: return "HTTP/1.1 403 Forbidden\r\n";
        case 404: return "HTTP/1.1 404 Not Found\r\n";
        case 405: return "HTTP/1.1 405 Method Not Allowed\r\n";
        case 408: return "HTTP/1.1 408 Request Timeout\r\n";
        case 413: return "HTTP/1.1 413 Content Too Large\r\n";
        case 415: return "HTTP/1.1 415 Unsupported Media Type\r\n";
        case 417: return "HTTP/1.1 417 Expectation Failed\r\n";
        case 422: return "HTTP/1.1 422 Unprocessable Content\r\n";
        case 429: return "HTTP/1.1 429 Too Many Requests\r\n";
        case 431: return "HTTP/1.1 431 Request Header Fields Too Large\r\n";
        case 500: return "HTTP/1.1 500 Internal Server Error\r\n";
        case 501: return "HTTP/1.1 501 Not Implemented\r\n";
        case 503: return "HTTP/1.1 503 Service Unavailable\r\n";
        case 504: return "HTTP/1.1 504 Gateway Timeout\r\n";
        case 505: return "HTTP/1.1 505 HTTP Version Not Supported\r\n";
        default: return {};
    }
}

// Writes text into a fixed block; the caller leaves room.
class Cursor {
  public:
    explicit Cursor(std::array<char, 16384>& block) : block_(block) {}
    Cursor& operator<<(std::string_view text) {
        OSSA_BUG_IF(text.size() > block_.size() - used_, "an answer's head fits into the block");
        std::memcpy(block_.data() + used_, text.data(), text.size());
        used_ += text.size();
        return *this;
    }
    Cursor& operator<<(std::uint64_t number) {
        char digits[24];
        const auto end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
        return *this << std::string_view{digits, static_cast<std::size_t>(end - digits)};
    }
    // As much of `text` as fits.
    std::size_t fill(std::string_view text) {
        const std::size_t take = std::min(text.size(), block_.size() - used_);
        std::memcpy(block_.data() + used_, text.data(), take);
        used_ += take;
        return take;
    }
    std::string_view text() const { return {block_.data(), used_}; }

  private:
    std::array<char, 16384>& block_;
    std::size_t used_ = 0;
};

// The media type without its parameters.
bool media_type_is(std::string_view field, std::string_view wanted) {
    std::string_view type = field.substr(0, field.find(';'));
    while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) {
        type.remove_suffix(1);
    }
    return boost::beast::iequals({type.data(), type.size()}, {wanted.data(), wanted.size()});
}

std::string_view path_of(std::string_view target) noexcept {
    return target.substr(0, target.find('?'));
}

}  // namespace

// ----------------------------------------------------------------------------------------------------------------
// shared

ServerMetrics::ServerMetrics(Metrics& metrics, const std::string& listener)
    : connections_open(
          metrics.gauge("ossa_http_connections_open", "Connections that are open.", {{"listener", listener}})),
      connections(metrics.counter("ossa_http_connections_total", "Connections accepted.", {{"listener", listener}})),
      connections_refused(metrics.counter("ossa_http_connections_refused_total",
                                          "Connections closed at once, over the limit.", {{"listener", listener}})),
      handshakes_failed(metrics.counter("ossa_http_handshakes_failed_total",
                                        "TLS handshakes that failed or took too long.", {{"listener", listener}})),
      inflight_requests(metrics.gauge("ossa_http_requests_in_flight", "Requests read and not yet answered.",
                                      {{"listener", listener}})),
      read_bytes(metrics.counter("ossa_http_read_bytes_total", "Bytes read, without TLS.", {{"listener", listener}})),
      written_bytes(
          metrics.counter("ossa_http_written_bytes_total", "Bytes written, without TLS.", {{"listener", listener}})),
      by_status{} {
    const auto code = [&](const std::string& text) {
        return &metrics.counter("ossa_http_requests_total", "Answers, by HTTP status.",
                                {{"listener", listener}, {"code", text}});
    };
    Counter* const other = code("other");
    for (unsigned status = 100; status < 600; ++status) {
        by_status[status - 100] = status_line(status).empty() ? other : code(std::to_string(status));
    }
}

void ServerMetrics::count_answer(unsigned status) noexcept {
    by_status[status >= 100 && status < 600 ? status - 100 : 499]->add();
}

Shared::Shared(ServerOptions options_in)
    : options(std::move(options_in)),
      own_metrics(options.metrics != nullptr ? nullptr : std::make_unique<Metrics>()),
      metrics(options.metrics != nullptr ? *options.metrics : *own_metrics, options.name),
      budget(options.limits.inflight_bytes_max) {}

void Deferred::give_back(std::unique_ptr<Deferred> deferred) {
    const std::shared_ptr<Worker> worker = deferred->worker.lock();
    if (!worker) {
        return;
    }
    // The raw pointer is good: the io_context that runs the answer is the worker's own.
    asio::post(worker->context(), [to = worker.get(), it = std::move(deferred)]() mutable {
        if (Session* const session = to->find(it->slot, it->serial)) {
            session->on_deferred_answer(std::move(it));
            to->remove_if_done(*session);
        }
    });
}

// ---------------------------------------------------------------------------------------------------------------
// session

void Descriptor::close() noexcept {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

Session::Session(Worker& worker, std::size_t slot, std::uint64_t serial, Descriptor socket, SSL* ssl)
    : worker_(worker),
      shared_(worker.shared()),
      socket_(std::move(socket)),
      stream_(socket_.get(), ssl),
      slot_(slot),
      serial_(serial) {}

Session::~Session() = default;

void Session::start() {
    deadline_ =
        now() + (stream_.encrypted() ? shared_.options.limits.handshake_deadline : shared_.options.limits.idle_max);
    state_ = stream_.encrypted() ? State::handshake : State::idle;
    wait_readable();
}

void Session::wait_readable() {
    wait_for(EPOLLIN);
}

void Session::wait_writable() {
    wait_for(EPOLLOUT);
}

// 0: for nothing, not even the peer's end.
void Session::wait_for(std::uint32_t events) {
    if (watched_ == events) {
        return;
    }
    epoll_event event{};
    event.events = events;
    event.data.u64 = std::uint64_t{slot_} << 32U | static_cast<std::uint32_t>(serial_);
    const int operation = events == 0 ? EPOLL_CTL_DEL : watched_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(worker_.poller(), operation, socket_.get(), &event) != 0) {
        return close("the socket cannot be watched");
    }
    watched_ = events;
}

void Session::on_ready() {
    if (posted_ || state_ == State::closed) {
        return;  // its turn comes
    }
    if (state_ == State::deferred) {
        wait_for(0);  // new input, or the peer's end, waits for the answer
    } else {
        resume();
    }
    worker_.remove_if_done(*this);
}

void Session::resume() {
    switch (state_) {
        case State::handshake:
            if (shake_hands()) {
                run();
            }
            break;
        case State::writing:
            if (continue_writing()) {
                run();
            }
            break;
        case State::lingering: drop_input(); break;
        case State::idle:
        case State::head:
        case State::body: run(); break;
        case State::deferred:
        case State::closed: break;
    }
}

void Session::yield() {
    if (!posted_) {
        posted_ = true;
        asio::post(worker_.context(), [this] {
            posted_ = false;
            resume();
            worker_.remove_if_done(*this);
        });
    }
}

bool Session::shake_hands() {
    switch (stream_.shake_hands()) {
        case Io::ok:
            state_ = State::idle;
            deadline_ = now() + shared_.options.limits.idle_max;
            if (shared_.phase.load(std::memory_order_relaxed) == Shared::Phase::finishing) {
                finish_if_idle(now());
            }
            return true;
        case Io::want_read: wait_readable(); return false;
        case Io::want_write: wait_writable(); return false;
        case Io::end:
            worker_.shared().metrics.handshakes_failed.add();
            close("peer left during the TLS handshake");
            return false;
        case Io::failed:
            worker_.shared().metrics.handshakes_failed.add();
            close("TLS handshake failed");
            return false;
    }
    return false;
}

// Reads and answers until the socket has no more, or something has to be waited for.
void Session::run() {
    for (unsigned turn = 0;; ++turn) {
        if (used_ != 0) {
            const Next next = step();
            if (next == Next::stop) {
                return;
            }
            if (next == Next::again) {
                if (used_ == 0 && !stream_.has_buffered_input()) {
                    return park();  // the usual end of a request: nothing to be had from the socket yet
                }
                if (turn >= turns_max) {
                    return yield();
                }
                continue;
            }
        }
        if (turn >= turns_max) {
            return yield();
        }
        if (!make_room()) {
            (void)refuse(503, "bodies in flight over the limit");
            return;
        }
        std::size_t got = 0;
        switch (stream_.read(buffer_.data() + used_, buffer_.capacity() - Request::body_padding - used_, got)) {
            case Io::ok:
                worker_.shared().metrics.read_bytes.add(got);
                if (state_ == State::idle) {
                    begin_request(now());
                }
                used_ += got;
                break;
            case Io::want_read: return park();
            case Io::want_write: return wait_writable();
            case Io::end: return close(state_ == State::idle ? "peer ended" : "peer ended within a request");
            case Io::failed: return close("read failed");
        }
    }
}

void Session::park() {
    if (state_ == State::idle) {
        release_buffer();
    }
    wait_readable();
}

void Session::begin_request(SteadyPoint now) {
    state_ = State::head;
    arrived_ = now;
    deadline_ = now + shared_.options.limits.read_deadline;
    head_.emplace(shared_.options.limits.head_bytes_max);
    chunks_.reset();
    route_ = nullptr;
    request_end_ = 0;
    close_after_ = false;
}

Session::Next Session::step() {
    if (state_ == State::idle) {
        begin_request(now());
    }
    if (state_ == State::head) {
        switch (head_->feed(bytes())) {
            case RequestHead::Step::more: return Next::read;
            case RequestHead::Step::refused: return refuse(head_->status(), head_->reason());
            case RequestHead::Step::complete: {
                const Next next = on_head();
                if (next != Next::read) {
                    return next;
                }
                break;
            }
        }
    }
    Next refused = Next::read;
    if (!body_is_complete(refused)) {
        return refused;
    }
    return handle();
}

// The head is there: refuses what can be refused now. Next::read means that the body is what we want next.
Session::Next Session::on_head() {
    const Limits& limits = shared_.options.limits;
    close_after_ = !head_->keep_alive();
    const std::string_view path = path_of(head_->target(bytes()));
    bool path_is_known = false;
    std::string_view allow;
    for (const Route& route : shared_.options.routes) {
        if (route.path == path) {
            path_is_known = true;
            allow = to_string(route.method);
            if (route.method == head_->method()) {
                route_ = &route;
                break;
            }
        }
    }
    // The end of the request is known early when its length is; else the connection ends behind a refusal.
    if (head_->body_kind() == BodyKind::none) {
        request_end_ = head_->size();
    } else if (head_->body_kind() == BodyKind::length) {
        if (head_->content_length() > limits.body_bytes_max) {
            return refuse(413, "body too large");
        }
        request_end_ = head_->size() + static_cast<std::size_t>(head_->content_length());
    } else {
        chunks_.emplace(limits.body_bytes_max);
        body_end_ = raw_ = head_->size();
    }
    if (route_ == nullptr) {
        return path_is_known ? refuse(405, "method not allowed", allow) : refuse(404, "no such path");
    }
    if (!route_->content_type.empty() && !media_type_is(head_->content_type(bytes()), route_->content_type)) {
        return refuse(415, "unsupported content type");
    }
    state_ = State::body;
    if (head_->expects_continue() && used_ == head_->size() && head_->body_kind() != BodyKind::none) {
        send_continue();
    }
    return state_ == State::body ? Next::read : Next::stop;
}

void Session::send_continue() {
    static constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
    std::size_t done = 0;
    if (stream_.write(text.data(), text.size(), done) != Io::ok || done != text.size()) {
        close("no room for 100 Continue");  // the socket was empty: such a peer is broken
    }
}

// False: `refused` says how to go on.
bool Session::body_is_complete(Next& refused) {
    if (head_->body_kind() != BodyKind::chunked) {
        return used_ >= request_end_;
    }
    switch (chunks_->feed(buffer_.data(), body_end_, raw_, used_)) {
        case ChunkedBody::Step::more:
            // Everything was looked at; what was framing is overwritten by what comes.
            used_ = raw_ = body_end_;
            return false;
        case ChunkedBody::Step::complete: request_end_ = raw_; return true;
        case ChunkedBody::Step::too_large: refused = refuse(413, "body too large"); return false;
        case ChunkedBody::Step::malformed: refused = refuse(400, "malformed chunk"); return false;
    }
    return false;
}

// Makes the buffer large enough for the next read: with what has arrived, not with what was announced.
bool Session::make_room() {
    constexpr std::size_t padding = Request::body_padding;
    if (!buffer_) {
        buffer_ = worker_.pool().take_small();
        return static_cast<bool>(buffer_);
    }
    if (used_ + padding < buffer_.capacity()) {
        return true;
    }
    const Limits& limits = shared_.options.limits;
    std::size_t wanted = std::max(BufferPool::medium_bytes, buffer_.capacity() * 2);
    if (head_ && request_end_ != 0) {
        wanted = std::max(BufferPool::medium_bytes, std::min(wanted, request_end_ + padding));
    } else {
        // Chunked, or still the head: never more than the largest request.
        wanted = std::min(wanted, limits.head_bytes_max + limits.body_bytes_max + BufferPool::small_bytes + padding);
    }
    if (wanted <= buffer_.capacity() || !charge_.raise_to(worker_.shared().budget, wanted)) {
        return false;
    }
    if (wanted == BufferPool::medium_bytes) {
        Buffer larger = worker_.pool().take_medium();
        if (!larger) {
            return false;
        }
        std::memcpy(larger.data(), buffer_.data(), used_);
        std::swap(larger, buffer_);
        worker_.pool().give_back(std::move(larger));
        return true;
    }
    return buffer_.resize(wanted);
}

Session::Next Session::handle() {
    const std::string_view all = bytes();
    const std::size_t body_begin = head_->size();
    const std::size_t body_size = (chunks_ ? body_end_ : request_end_) - body_begin;
    Request request;
    request.method = head_->method();
    request.target = head_->target(all);
    request.path = path_of(request.target);
    request.query = request.target.size() > request.path.size() ? request.target.substr(request.path.size() + 1)
                                                                : std::string_view{};
    request.content_type = head_->content_type(all);
    request.body = all.substr(body_begin, body_size);
    request.arrived = arrived_;
    request.worker = worker_.index();

    counted_inflight_ = true;
    worker_.shared().metrics.inflight_requests.add(1);
    Response& response = worker_.response();
    response.reset();
    Exchange exchange{*this, request, response};
    try {
        route_->handler(exchange);
    } catch (...) {
        count_bug();
        OSSA_LOG(error, "a handler threw", {"path", request.path});
        if (state_ == State::deferred) {
            return Next::stop;  // its Responder has answered, or will
        }
        response.reset();
        response.plain(500, "internal error\n");
    }
    if (state_ == State::deferred) {
        return Next::stop;
    }
    return answer(response);
}

std::unique_ptr<Deferred> Session::defer(Request& request, Response& response) {
    OSSA_BUG_IF(state_ != State::body, "a request is deferred once, by its handler");
    auto deferred = std::make_unique<Deferred>();
    deferred->shared = worker_.shared().shared_from_this();
    deferred->worker = worker_.weak_from_this();
    deferred->slot = slot_;
    deferred->serial = serial_;
    deferred->request = request;
    deferred->response = std::move(response);
    deferred->buffer = std::move(buffer_);
    deferred->charge = std::move(charge_);
    state_ = State::deferred;
    deadline_ = now() + shared_.options.limits.answer_deadline;
    return deferred;
}

asio::io_context& Session::context() noexcept {
    return worker_.context();
}

void Session::on_deferred_answer(std::unique_ptr<Deferred> deferred) {
    if (state_ != State::deferred) {
        return;  // too late: the deadline has answered, or the connection has gone
    }
    buffer_ = std::move(deferred->buffer);
    charge_ = std::move(deferred->charge);
    state_ = State::body;
    if (answer(deferred->response) == Next::again) {
        run();
    }
}

// Answers what is wrong with the request itself. The connection lives on when the whole request has been read.
Session::Next Session::refuse(unsigned status, std::string_view reason, std::string_view allow) {
    OSSA_LOG(debug, "request refused", {"listener", shared_.options.name}, {"peer", peer()}, {"status", status},
             {"reason", reason});
    const bool whole = buffer_ && request_end_ != 0 && used_ >= request_end_;
    close_after_ = close_after_ || !whole;
    Response& response = worker_.response();
    response.reset();
    response.plain(status, reason);
    response.body += '\n';
    if (status == 503) {
        response.retry_after_seconds = 1;
    }
    return answer(response, allow);
}

Session::Next Session::answer(Response& response, std::string_view allow) {
    close_after_ =
        close_after_ || response.close || shared_.phase.load(std::memory_order_relaxed) != Shared::Phase::serving;
    answer_status_ = response.status;
    Cursor out{worker_.stage()};
    const std::string_view line = status_line(response.status);
    if (line.empty()) {
        out << "HTTP/1.1 " << std::uint64_t{response.status} << " Status\r\n";
    } else {
        out << line;
    }
    const auto at = now();
    out << "Date: " << worker_.date(at) << "\r\n";
    if (response.status != 204) {
        out << "Content-Type: " << response.content_type
            << "\r\nContent-Length: " << std::uint64_t{response.body.size()} << "\r\n";
    }
    if (!allow.empty()) {
        out << "Allow: " << allow << "\r\n";
    }
    if (response.retry_after_seconds) {
        out << "Retry-After: " << std::uint64_t{*response.retry_after_seconds} << "\r\n";
    }
    if (close_after_) {
        out << "Connection: close\r\n";
    }
    out << "\r\n";
    // Head and body leave in one record and one write as far as a record goes.
    const std::size_t body_at = response.status == 204 ? response.body.size() : out.fill(response.body);
    deadline_ = at + shared_.options.limits.write_deadline;
    return write_out(out.text(), response.body, body_at);
}

Session::Next Session::write_out(std::string_view first, std::string& body, std::size_t body_at) {
    Stream& to = stream_;
    Counter& written = worker_.shared().metrics.written_bytes;
    std::size_t first_at = 0;
    while (first_at < first.size() || body_at < body.size()) {
        const bool in_first = first_at < first.size();
        const std::string_view rest = in_first ? first.substr(first_at) : std::string_view{body}.substr(body_at);
        std::size_t done = 0;
        switch (to.write(rest.data(), rest.size(), done)) {
            case Io::ok:
                written.add(done);
                (in_first ? first_at : body_at) += done;
                continue;
            case Io::want_read:
            case Io::want_write: {
                auto unsent = std::make_unique<Unsent>();
                unsent->first = first.substr(first_at);
                unsent->body.swap(body);
                unsent->body_at = body_at;
                unsent_ = std::move(unsent);
                state_ = State::writing;
                wait_writable();
                return Next::stop;
            }
            case Io::end:
            case Io::failed: close("peer left during the answer"); return Next::stop;
        }
    }
    if (body.capacity() > response_bytes_kept) {
        body = {};
    }
    return finish_answer();
}

// True: the answer is out and the connection goes on.
bool Session::continue_writing() {
    const std::unique_ptr<Unsent> unsent = std::move(unsent_);
    return write_out(unsent->first, unsent->body, unsent->body_at) == Next::again;
}

Session::Next Session::finish_answer() {
    worker_.shared().metrics.count_answer(answer_status_);
    served_ = true;
    if (close_after_) {
        linger();
        return Next::stop;
    }
    end_request();
    return Next::again;
}

// Forgets the answered request; bytes behind it are the beginning of the next.
void Session::end_request() {
    uncount();
    const std::size_t rest = used_ - request_end_;
    state_ = State::idle;
    deadline_ = now() + shared_.options.limits.idle_max;
    if (rest == 0) {
        used_ = 0;
        if (buffer_.capacity() > BufferPool::small_bytes) {
            release_buffer();
        }
        return;
    }
    if (buffer_.capacity() > BufferPool::small_bytes && rest + Request::body_padding < BufferPool::small_bytes) {
        if (Buffer smaller = worker_.pool().take_small()) {
            std::memcpy(smaller.data(), buffer_.data() + request_end_, rest);
            const std::size_t kept = rest;
            release_buffer();
            buffer_ = std::move(smaller);
            used_ = kept;
            return;
        }
    }
    std::memmove(buffer_.data(), buffer_.data() + request_end_, rest);
    used_ = rest;
}

void Session::uncount() noexcept {
    if (counted_inflight_) {
        counted_inflight_ = false;
        worker_.shared().metrics.inflight_requests.add(-1);
    }
}

void Session::release_buffer() {
    if (buffer_) {
        worker_.pool().give_back(std::move(buffer_));
        buffer_ = {};
    }
    charge_.reset();
    used_ = 0;
}

// Ends our direction, then reads and drops what the peer still sends: closing over unread bytes would send a reset,
// which can destroy the answer on its way.
void Session::linger() {
    uncount();
    release_buffer();
    stream_.end_writing();
    state_ = State::lingering;
    deadline_ = now() + shared_.options.limits.linger_max;
    wait_readable();
}

void Session::drop_input() {
    for (;;) {
        std::size_t got = 0;
        switch (stream_.drop(worker_.stage().data(), worker_.stage().size(), got)) {
            case Io::ok:
                lingered_ += got;
                if (lingered_ > shared_.options.limits.linger_bytes_max) {
                    return close("peer went on sending after the last answer");
                }
                break;
            case Io::want_read:
            case Io::want_write: return wait_readable();
            case Io::end:
            case Io::failed: return close("ended");
        }
    }
}

void Session::close(std::string_view reason) {
    if (state_ == State::closed) {
        return;
    }
    OSSA_LOG(debug, "connection closed", {"listener", shared_.options.name}, {"peer", peer()}, {"reason", reason},
             {"error", stream_.failure()});
    uncount();
    release_buffer();
    unsent_.reset();
    state_ = State::closed;
    socket_.close();  // which ends its watch
    worker_.shared().metrics.connections_open.add(-1);
    worker_.shared().connections.fetch_sub(1, std::memory_order_relaxed);
}

void Session::cut() {
    close("server stopped");
}

void Session::finish_if_idle(SteadyPoint now) {
    if (state_ == State::idle && served_) {
        linger();
    } else if (state_ == State::idle || state_ == State::handshake) {
        deadline_ = std::min(deadline_, now + last_chance);
    }
}

void Session::on_tick(SteadyPoint now) {
    if (deadline_ > now) {
        return;
    }
    switch (state_) {
        case State::handshake:
            worker_.shared().metrics.handshakes_failed.add();
            close("TLS handshake took too long");
            break;
        case State::idle:
            OSSA_LOG(debug, "connection idle for too long", {"listener", shared_.options.name}, {"peer", peer()});
            linger();
            break;
        case State::head:
        case State::body:
            close_after_ = true;
            (void)refuse(408, "request took too long");
            break;
        case State::deferred:
            OSSA_LOG(warn, "no answer within the deadline", {"listener", shared_.options.name}, {"peer", peer()});
            close_after_ = true;
            (void)refuse(504, "no answer in time");
            break;
        case State::writing: close("peer read the answer too slowly"); break;
        case State::lingering: close("peer did not end"); break;
        case State::closed: break;
    }
}

std::string Session::peer() const {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    char text[INET6_ADDRSTRLEN] = "";
    if (::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
        return "unknown";
    }
    if (address.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
        return "[" + std::string{text} + "]:" + std::to_string(ntohs(v6.sin6_port));
    }
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string{text} + ":" + std::to_string(ntohs(v4.sin_port));
}

// ----------------------------------------------------------------------------------------------------------------
// worker

namespace {

std::chrono::milliseconds tick_for(const Limits& limits) {
    const auto least = std::min({limits.handshake_deadline, limits.read_deadline, limits.answer_deadline,
                                 limits.write_deadline, limits.idle_max, limits.linger_max});
    return std::clamp(least / 4, std::chrono::milliseconds{10}, std::chrono::milliseconds{500});
}

int made_poller() {
    const int fd = ::epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
    }
    return fd;
}

}  // namespace

// An accepted socket on its way to its worker; closed when it does not arrive.
class Worker::Arrival {
  public:
    Arrival(std::shared_ptr<Shared> shared, int fd) : shared_(std::move(shared)), fd_(fd) {}
    Arrival(Arrival&& other) noexcept : shared_(std::move(other.shared_)), fd_(std::exchange(other.fd_, -1)) {}
    Arrival& operator=(Arrival&&) = delete;
    ~Arrival() {
        if (fd_ >= 0) {
            ::close(fd_);
            shared_->connections.fetch_sub(1, std::memory_order_relaxed);
        }
    }
    Descriptor release() noexcept { return Descriptor{std::exchange(fd_, -1)}; }
    int fd() const noexcept { return fd_; }

  private:
    std::shared_ptr<Shared> shared_;
    int fd_;
};

Worker::Worker(std::shared_ptr<Shared> shared, unsigned index)
    : shared_(std::move(shared)),
      index_(index),
      guard_(io_.get_executor()),
      ticker_(io_.get_executor()),
      poller_(io_.get_executor(), made_poller()),
      tick_(tick_for(shared_->options.limits)) {
    watch();
}

Worker::~Worker() = default;

void Worker::post_adopt(int fd) {
    asio::post(io_, [this, arrival = Arrival{shared_, fd}]() mutable { adopt(std::move(arrival)); });
}

void Worker::adopt(int fd) {
    adopt(Arrival{shared_, fd});
}

void Worker::adopt(Arrival arrival) {
    SSL* ssl = nullptr;
    if (shared_->options.identity) {
        const auto identity = shared_->options.identity->read();
        ssl = identity ? SSL_new(identity->context()) : nullptr;
        if (ssl == nullptr || SSL_set_fd(ssl, arrival.fd()) != 1) {
            SSL_free(ssl);
            OSSA_LOG(error, "no TLS session for a connection", {"listener", shared_->options.name});
            shared_->metrics.handshakes_failed.add();
            return;
        }
    }
    const std::unique_ptr<SSL, decltype(&SSL_free)> owner{ssl, &SSL_free};
    // From here on the session counts it down when it closes.
    Descriptor socket = arrival.release();
    std::size_t slot = sessions_.size();
    if (free_slots_.empty()) {
        sessions_.emplace_back();
        free_slots_.reserve(sessions_.capacity());
    } else {
        slot = free_slots_.back();
        free_slots_.pop_back();
    }
    if (ssl != nullptr) {
        SSL_up_ref(ssl);
    }
    sessions_[slot] = std::make_unique<Session>(*this, slot, ++serial_, std::move(socket), ssl);
    ++count_;
    shared_->metrics.connections.add();
    shared_->metrics.connections_open.add(1);
    Session& session = *sessions_[slot];
    session.start();
    if (finishing_) {
        session.finish_if_idle(std::chrono::steady_clock::now());
    }
    arm_tick();
}

void Worker::remove_if_done(Session& session) {
    if (session.removable()) {
        const std::size_t slot = session.slot();
        sessions_[slot].reset();
        free_slots_.push_back(slot);
        --count_;
        end_if_empty();
    }
}

Session* Worker::find(std::size_t slot, std::uint64_t serial) noexcept {
    Session* const session = at_slot(slot);
    return session != nullptr && session->serial() == serial ? session : nullptr;
}

template <class F>
void Worker::for_each_session(F&& f) {
    for (std::size_t slot = 0; slot < sessions_.size(); ++slot) {
        if (Session* const session = sessions_[slot].get()) {
            f(*session);
            remove_if_done(*session);
        }
    }
}

void Worker::watch() {
    poller_.async_wait(boost::asio::posix::descriptor_base::wait_read, [this](const boost::system::error_code& ec) {
        if (!ec) {
            on_events();
        }
    });
}

void Worker::on_events() {
    struct Again {
        Worker& worker;
        ~Again() { worker.watch(); }
    } const again{*this};
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(poller(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
        const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
        // An earlier one of them may have ended this one.
        Session* const session = at_slot(id >> 32U);
        if (session != nullptr && static_cast<std::uint32_t>(session->serial()) == static_cast<std::uint32_t>(id)) {
            session->on_ready();
        }
    }
}

Session* Worker::at_slot(std::size_t slot) noexcept {
    return slot < sessions_.size() ? sessions_[slot].get() : nullptr;
}

void Worker::arm_tick() {
    if (!ticking_ && count_ != 0) {
        ticking_ = true;
        ticker_.expires_after(tick_);
        ticker_.async_wait([this](const boost::system::error_code& ec) { on_tick(ec); });
    }
}

void Worker::on_tick(const boost::system::error_code& ec) {
    ticking_ = false;
    if (ec) {
        return;
    }
    const auto at = now();
    for_each_session([at](Session& session) { session.on_tick(at); });
    arm_tick();
}

void Worker::post_finish() {
    asio::post(io_, [this] { finish(); });
}

void Worker::post_cut() {
    asio::post(io_, [this] { cut(); });
}

void Worker::finish() {
    finishing_ = true;
    const auto at = now();
    for_each_session([at](Session& session) { session.finish_if_idle(at); });
    end_if_empty();
}

void Worker::cut() {
    finishing_ = true;
    for_each_session([](Session& session) { session.cut(); });
    end_if_empty();
}

void Worker::end_if_empty() {
    if (finishing_ && count_ == 0) {
        io_.stop();
    }
}

void Worker::run() {
    for (;;) {
        try {
            io_.run();
            return;
        } catch (...) {
            // Only what handlers started on context() can throw here; the thread and its connections go on.
            count_bug();
            OSSA_LOG(error, "an exception reached a worker thread", {"listener", shared_->options.name});
        }
    }
}

std::string_view Worker::date(SteadyPoint at) noexcept {
    if (at >= date_until_) {
        const std::time_t seconds = std::time(nullptr);
        std::tm parts{};
        gmtime_r(&seconds, &parts);
        static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
        static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        char format[40];
        std::snprintf(format, sizeof format, "%s, %%d %s %%Y %%H:%%M:%%S GMT", days[parts.tm_wday % 7],
                      months[parts.tm_mon % 12]);
        date_length_ = std::strftime(date_.data(), date_.size(), format, &parts);
        date_until_ = at + std::chrono::milliseconds{500};
    }
    return {date_.data(), date_length_};
}

}  // namespace ossa::net
