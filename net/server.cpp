#include "net/server.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "net/log.hpp"
#include "net/session.hpp"

namespace ossa::net {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

constexpr int backlog = 1024;
constexpr unsigned accepts_in_one_go = 64;
// Out of descriptors or memory: how long we leave new connections in the kernel's queue.
constexpr auto accept_pause = 100ms;
// Half-open connections that no limit of ours meets earlier: the kernel asks after 30 s and gives up 30 s later.
constexpr int keepalive_idle_s = 30;
constexpr int keepalive_interval_s = 10;
constexpr int keepalive_probes = 3;

std::string errno_text() {
    return std::generic_category().message(errno);
}

void set_option(int fd, int level, int option, int value) noexcept {
    (void)::setsockopt(fd, level, option, &value, sizeof value);
}

struct HostPort {
    std::string host;
    std::string port;
};

Result<HostPort> split_address(const std::string& address) {
    const auto bad = [&] {
        return failure(ErrorCode::invalid, "address \"" + address + "\": want HOST:PORT or [IPV6]:PORT");
    };
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon + 1 == address.size()) {
        return bad();
    }
    HostPort out{address.substr(0, colon), address.substr(colon + 1)};
    if (out.port.size() > 5 ||
        !std::all_of(out.port.begin(), out.port.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
        std::stoul(out.port) > 65535) {
        return bad();
    }
    if (out.host.size() >= 2 && out.host.front() == '[' && out.host.back() == ']') {
        out.host = out.host.substr(1, out.host.size() - 2);
    } else if (out.host.find(':') != std::string::npos) {
        return bad();
    }
    return out;
}

Result<int> listen_on(const std::string& address) {
    OSSA_TRY(const HostPort at, split_address(address));
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (const int rc = ::getaddrinfo(at.host.empty() ? nullptr : at.host.c_str(), at.port.c_str(), &hints, &found);
        rc != 0) {
        return failure(ErrorCode::invalid, "address \"" + address + "\": " + ::gai_strerror(rc));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
    // Every interface: prefer the IPv6 wildcard, which takes IPv4 as well.
    std::vector<const addrinfo*> candidates;
    for (const addrinfo* it = found; it != nullptr; it = it->ai_next) {
        candidates.push_back(it);
    }
    if (at.host.empty()) {
        std::stable_sort(candidates.begin(), candidates.end(), [](const addrinfo* a, const addrinfo* b) {
            return a->ai_family == AF_INET6 && b->ai_family != AF_INET6;
        });
    }
    std::string why = "no usable address";
    for (const addrinfo* it : candidates) {
        const int fd = ::socket(it->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            why = errno_text();
            continue;
        }
        set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (it->ai_family == AF_INET6) {
            set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, at.host.empty() || at.host == "::" ? 0 : 1);
        }
        // Accepted sockets inherit these.
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s);
        set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s);
        set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes);
        if (::bind(fd, it->ai_addr, it->ai_addrlen) == 0 && ::listen(fd, backlog) == 0) {
            return fd;
        }
        why = errno_text();
        ::close(fd);
    }
    return failure(ErrorCode::unavailable, "cannot listen on \"" + address + "\": " + why);
}

std::uint16_t port_of(int fd) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
        return 0;
    }
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                               : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Takes connections and deals them round robin. Lives on worker 0's thread.
class Acceptor {
  public:
    Acceptor(std::vector<std::shared_ptr<Worker>>& workers, Shared& shared)
        : workers_(workers),
          shared_(shared),
          socket_(workers.front()->context().get_executor()),
          pause_(workers.front()->context().get_executor()) {}

    Result<void> open(int fd) {
        boost::system::error_code ec;
        socket_.assign(asio::ip::tcp::v4(), fd, ec);
        if (ec) {
            ::close(fd);
            return failure(ErrorCode::unavailable, "cannot watch the listening socket: " + ec.message());
        }
        return {};
    }

    void wait() {
        socket_.async_wait(Socket::wait_read, [this](const boost::system::error_code& ec) {
            if (!ec && socket_.is_open()) {
                if (accept_some(accepts_in_one_go)) {
                    wait();
                } else {
                    pause();
                }
            }
        });
    }

    // What the kernel has already taken for us is still served.
    void close() {
        (void)accept_some(2 * backlog);
        boost::system::error_code ignored;
        socket_.close(ignored);
        pause_.cancel();
    }

    void abandon() {
        boost::system::error_code ignored;
        socket_.close(ignored);
        pause_.cancel();
    }

  private:
    using Socket = asio::basic_socket_acceptor<asio::ip::tcp, asio::io_context::executor_type>;
    using Timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                                             asio::io_context::executor_type>;

    // False: the system is out of something; trying again at once would spin.
    bool accept_some(unsigned most) {
        for (unsigned i = 0; i < most; ++i) {
            const int fd = ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) {
                switch (errno) {
                    case EAGAIN: return true;
                    case EINTR:
                    case ECONNABORTED:
                    case EPROTO:
                    case EPERM:
                    case ENETDOWN:
                    case EHOSTDOWN:
                    case EHOSTUNREACH:
                    case ENETUNREACH: continue;
                    default:
                        OSSA_LOG(warn, "cannot accept connections", {"listener", shared_.options.name},
                                 {"error", errno_text()});
                        return false;
                }
            }
            deal(fd);
        }
        return true;
    }

    void deal(int fd) {
        if (shared_.connections.fetch_add(1, std::memory_order_relaxed) >= shared_.options.limits.connections_max) {
            shared_.connections.fetch_sub(1, std::memory_order_relaxed);
            shared_.metrics.connections_refused.add();
            ::close(fd);
            OSSA_LOG(debug, "connection refused, too many", {"listener", shared_.options.name});
            return;
        }
        const std::size_t to = next_++ % workers_.size();
        if (to == 0) {
            workers_.front()->adopt(fd);
        } else {
            workers_[to]->post_adopt(fd);
        }
    }

    void pause() {
        pause_.expires_after(accept_pause);
        pause_.async_wait([this](const boost::system::error_code& ec) {
            if (!ec && socket_.is_open()) {
                wait();
            }
        });
    }

    std::vector<std::shared_ptr<Worker>>& workers_;
    Shared& shared_;
    Socket socket_;
    Timer pause_;
    std::size_t next_ = 0;
};

}  // namespace

struct HttpServer::State {
    explicit State(ServerOptions options) : shared(std::make_shared<Shared>(std::move(options))) {}

    std::shared_ptr<Shared> shared;
    std::vector<std::shared_ptr<Worker>> workers;
    std::unique_ptr<Acceptor> acceptor;  // ends before the workers, whose io_context it is on
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::condition_variable ended;
    std::size_t running = 0;
    std::uint16_t port = 0;

    void run(Worker& worker) {
        worker.run();
        const std::lock_guard lock{mutex};
        --running;
        ended.notify_all();
    }

    bool wait_ended(std::chrono::milliseconds time) {
        std::unique_lock lock{mutex};
        return ended.wait_for(lock, time, [&] { return running == 0; });
    }

    // Waits in small steps; false when `hurry` says so.
    bool wait(std::chrono::milliseconds time, const std::function<bool()>& hurry) {
        const auto until = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < until) {
            if (hurry && hurry()) {
                return false;
            }
            if (wait_ended(20ms)) {
                return true;
            }
        }
        return true;
    }

    void join() {
        for (std::thread& thread : threads) {
            thread.join();
        }
        threads.clear();
        acceptor.reset();
        workers.clear();
    }
};

HttpServer::HttpServer(ServerOptions options) : state_(std::make_unique<State>(std::move(options))) {}

HttpServer::~HttpServer() {
    stop();
}

Result<void> HttpServer::start() {
    State& it = *state_;
    ignore_sigpipe();
    OSSA_TRY(const int fd, listen_on(it.shared->options.address));
    it.port = port_of(fd);
    const unsigned count = std::max(1U, it.shared->options.workers);
    for (unsigned index = 0; index < count; ++index) {
        it.workers.push_back(std::make_shared<Worker>(it.shared, index));
    }
    it.acceptor = std::make_unique<Acceptor>(it.workers, *it.shared);
    if (auto opened = it.acceptor->open(fd); !opened) {
        it.join();
        return unexpected(std::move(opened).error());
    }
    it.acceptor->wait();
    it.running = count;
    for (const auto& worker : it.workers) {
        it.threads.emplace_back([state = &it, raw = worker.get()] { state->run(*raw); });
    }
    OSSA_LOG(info, "listening", {"listener", it.shared->options.name}, {"address", it.shared->options.address},
             {"port", it.port}, {"workers", count}, {"tls", it.shared->options.identity != nullptr});
    return {};
}

std::uint16_t HttpServer::port() const noexcept {
    return state_->port;
}

void HttpServer::drain(std::chrono::milliseconds grace, const std::function<bool()>& hurry) {
    State& it = *state_;
    if (it.threads.empty()) {
        return;
    }
    it.shared->phase = Shared::Phase::closing;
    OSSA_LOG(info, "draining", {"listener", it.shared->options.name}, {"grace_ms", grace.count()});
    if (it.wait(grace, hurry)) {
        it.shared->phase = Shared::Phase::finishing;
        asio::post(it.workers.front()->context(), [state = &it] {
            state->acceptor->close();
            for (const auto& worker : state->workers) {
                worker->post_finish();
            }
        });
        (void)it.wait(it.shared->options.limits.drain_max, hurry);
    }
    stop();
}

void HttpServer::stop() {
    State& it = *state_;
    if (it.threads.empty()) {
        return;
    }
    it.shared->phase = Shared::Phase::finishing;
    asio::post(it.workers.front()->context(), [state = &it] {
        state->acceptor->abandon();
        for (const auto& worker : state->workers) {
            worker->post_cut();
        }
    });
    it.join();
    OSSA_LOG(info, "stopped", {"listener", it.shared->options.name});
}

std::size_t HttpServer::connections() const noexcept {
    return state_->shared->connections.load(std::memory_order_relaxed);
}

std::size_t HttpServer::inflight_bytes() const noexcept {
    return state_->shared->budget.used();
}

void ignore_sigpipe() noexcept {
    (void)std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace ossa::net
