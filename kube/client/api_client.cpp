#include "kube/client/api_client.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <charconv>
#include <deque>
#include <list>

#include "net/log.hpp"

namespace ossa::kube {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto use = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t answer_bytes_max = std::size_t{64} << 20;
constexpr std::size_t event_bytes_max = std::size_t{8} << 20;
const json::Limits answer_limits{.bytes_max = answer_bytes_max, .depth_max = 300, .values_max = 1U << 24};

SteadyPoint now() {
    return std::chrono::steady_clock::now();
}

Error network_error(const error_code& error, std::string_view doing) {
    const bool late = error == beast::error::timeout || error == asio::error::timed_out;
    return Error{late ? ErrorCode::deadline : ErrorCode::unavailable,
                 std::string(doing) + ": " + (late ? "the time is up" : error.message())};
}

struct Connection {
    Connection(const asio::any_io_executor& executor, std::shared_ptr<asio::ssl::context> with)
        : context(std::move(with)), stream(executor, *context) {}
    std::shared_ptr<asio::ssl::context> context;
    beast::ssl_stream<beast::tcp_stream> stream;
    beast::flat_buffer buffer;
    SteadyPoint last_used{};

    void expires_at(SteadyPoint deadline) { beast::get_lowest_layer(stream).expires_at(deadline); }
};
using ConnectionPtr = std::unique_ptr<Connection>;

using Head = http::request<http::string_body>;

http::verb verb_of(ApiVerb verb) {
    switch (verb) {
        case ApiVerb::get: return http::verb::get;
        case ApiVerb::post: return http::verb::post;
        case ApiVerb::put: return http::verb::put;
        case ApiVerb::patch: return http::verb::patch;
        case ApiVerb::delete_: return http::verb::delete_;
    }
    return http::verb::get;
}

std::optional<std::chrono::seconds> retry_after_of(const http::fields& fields) {
    const auto text = fields[http::field::retry_after];
    unsigned seconds = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc{} || at == text.data() || seconds > 3600) {
        return {};
    }
    return std::chrono::seconds(seconds);
}

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
        text.pop_back();
    }
    return text;
}

}  // namespace

struct WatchStream::State {
    ConnectionPtr connection;
    http::response_parser<http::buffer_body> parser;
    std::string pending;      // bytes of events that are not taken yet
    std::size_t scanned = 0;  // of pending: no newline so far
    std::vector<char> piece = std::vector<char>(std::size_t{32} << 10);
};

WatchStream::WatchStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
WatchStream::~WatchStream() = default;
WatchStream::WatchStream(WatchStream&&) noexcept = default;

Task<Result<std::optional<json::Document>>> WatchStream::next(SteadyPoint deadline) {
    State& s = *state_;
    for (;;) {
        const std::size_t newline = s.pending.find('\n', s.scanned);
        if (newline != std::string::npos) {
            auto event = json::Document::from(std::string_view{s.pending}.substr(0, newline), answer_limits);
            s.pending.erase(0, newline + 1);
            s.scanned = 0;
            if (s.pending.empty() && s.pending.capacity() > s.piece.size() * 2) {
                s.pending.shrink_to_fit();
            }
            if (!event) {
                co_return failure(ErrorCode::internal, "the watch sent no JSON: " + event.error().message());
            }
            co_return std::optional<json::Document>{std::move(*event)};
        }
        s.scanned = s.pending.size();
        if (s.pending.size() > event_bytes_max) {
            co_return failure(ErrorCode::too_large,
                              "a watch event has more than " + std::to_string(event_bytes_max) + " bytes");
        }
        if (s.parser.is_done()) {
            co_return std::optional<json::Document>{};
        }
        auto& body = s.parser.get().body();
        body.data = s.piece.data();
        body.size = s.piece.size();
        body.more = true;
        s.connection->expires_at(deadline);
        auto [error, bytes] = co_await http::async_read_some(s.connection->stream, s.connection->buffer, s.parser, use);
        s.pending.append(s.piece.data(), s.piece.size() - body.size);
        if (error == http::error::need_buffer || error == http::error::end_of_chunk) {
            error = {};
        }
        if (error == http::error::end_of_stream || error == http::error::partial_message ||
            error == asio::ssl::error::stream_truncated) {
            co_return std::optional<json::Document>{};
        }
        if (error) {
            co_return unexpected(network_error(error, "watch"));
        }
    }
}

struct ApiClient::State {
    asio::any_io_executor executor;
    ClusterAccess access;
    ApiClientOptions options;
    std::shared_ptr<asio::ssl::context> tls;
    SteadyPoint reread_at{};
    std::list<ConnectionPtr> idle;
    std::size_t open = 0;  // exchanges under way
    struct Waiter {
        asio::steady_timer timer;
        bool given = false;
    };
    std::deque<Waiter*> waiting;

    Result<void> make_tls() {
        auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
        error_code error;
        const auto check = [&](std::string_view what) -> Result<void> {
            if (error) {
                return failure(ErrorCode::invalid, std::string(what) + " of " + access.origin + ": " + error.message());
            }
            return {};
        };
        context->set_options(
            asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1 | asio::ssl::context::no_sslv3, error);
        if (access.skip_verify) {
            context->set_verify_mode(asio::ssl::verify_none, error);
        } else {
            context->set_verify_mode(asio::ssl::verify_peer, error);
            context->set_verify_callback(asio::ssl::host_name_verification(access.server_name), error);
            if (access.ca_pem.empty()) {
                context->set_default_verify_paths(error);
            } else {
                context->add_certificate_authority(asio::buffer(access.ca_pem), error);
            }
            OSSA_CHECK(check("CA"));
        }
        if (!access.certificate_pem.empty()) {
            context->use_certificate_chain(asio::buffer(access.certificate_pem), error);
            OSSA_CHECK(check("client certificate"));
            context->use_private_key(asio::buffer(access.key_pem), asio::ssl::context::pem, error);
            OSSA_CHECK(check("client key"));
        }
        tls = std::move(context);
        return {};
    }

    // Files that are missing or broken for a moment leave what we have.
    void reread(bool at_once) {
        if (!at_once && now() < reread_at) {
            return;
        }
        reread_at = now() + options.reread_after;
        if (!access.token_file.empty()) {
            if (auto token = read_small_file(access.token_file); token && !trimmed(*token).empty()) {
                access.token = trimmed(*token);
            }
        }
        if (!access.ca_file.empty()) {
            if (auto ca = read_small_file(access.ca_file); ca && !ca->empty() && *ca != access.ca_pem) {
                const std::string before = std::exchange(access.ca_pem, *ca);
                if (const auto made = make_tls(); !made) {
                    OSSA_LOG(warn, "the cluster's CA file is broken; going on with the last one",
                             {"error", made.error().message()});
                    access.ca_pem = before;
                } else {
                    idle.clear();
                }
            }
        }
    }

    Head head_of(const ApiRequest& request) const {
        Head head{verb_of(request.verb), access.path_prefix + request.target, 11};
        head.set(http::field::host, access.host);
        head.set(http::field::user_agent, options.user_agent);
        head.set(http::field::accept, "application/json");
        if (!access.token.empty()) {
            head.set(http::field::authorization, "Bearer " + trimmed(access.token));
        }
        if (request.body_kind != ApiBody::none) {
            const std::string_view type = content_type(request.body_kind);
            head.set(http::field::content_type, beast::string_view{type.data(), type.size()});
        }
        head.body() = request.body;
        head.prepare_payload();
        return head;
    }

    Task<Result<ConnectionPtr>> connect(SteadyPoint deadline) {
        if (!tls) {
            OSSA_CO_CHECK(make_tls());
        }
        auto connection = std::make_unique<Connection>(executor, tls);
        tcp::resolver resolver(executor);
        auto [resolve_error, addresses] = co_await resolver.async_resolve(access.host, access.port, use);
        if (resolve_error) {
            co_return unexpected(network_error(resolve_error, "resolve " + access.host));
        }
        auto& socket = beast::get_lowest_layer(connection->stream);
        socket.expires_at(deadline);
        auto [connect_error, endpoint] = co_await socket.async_connect(addresses, use);
        if (connect_error) {
            co_return unexpected(network_error(connect_error, "connect to " + access.host + ":" + access.port));
        }
        error_code ignored;
        socket.socket().set_option(tcp::no_delay(true), ignored);
        if (!SSL_set_tlsext_host_name(connection->stream.native_handle(), access.server_name.c_str())) {
            co_return failure(ErrorCode::internal, "TLS: cannot set the server's name");
        }
        auto [shake_error] = co_await connection->stream.async_handshake(asio::ssl::stream_base::client, use);
        if (shake_error) {
            co_return unexpected(network_error(shake_error, "TLS with " + access.host + ":" + access.port));
        }
        co_return connection;
    }

    ConnectionPtr take_idle() {
        while (!idle.empty()) {
            ConnectionPtr connection = std::move(idle.back());
            idle.pop_back();
            if (now() - connection->last_used < options.idle_max) {
                return connection;
            }
        }
        return nullptr;
    }

    // Waits for one of the connections_max places. False: the time was up.
    Task<bool> enter(SteadyPoint deadline) {
        if (open < options.connections_max) {
            ++open;
            co_return true;
        }
        Waiter waiter{asio::steady_timer{executor, deadline}};
        waiting.push_back(&waiter);
        co_await waiter.timer.async_wait(use);
        std::erase(waiting, &waiter);
        co_return waiter.given;  // not the timer's word: its end and a place may come at the same moment
    }
    void leave() {
        if (waiting.empty()) {
            --open;
            return;
        }
        Waiter* const next = waiting.front();
        waiting.pop_front();
        next->given = true;
        next->timer.cancel();
    }

    using Parser = http::response_parser<http::string_body>;
    // `answered`: something of the answer has come, so the request must not be sent again.
    Task<Result<void>> exchange(Connection& connection, Head& head, Parser& parser, SteadyPoint deadline,
                                bool& answered) {
        connection.expires_at(deadline);
        auto [write_error, written] = co_await http::async_write(connection.stream, head, use);
        if (write_error) {
            co_return unexpected(network_error(write_error, "send"));
        }
        auto [read_error, read] = co_await http::async_read_header(connection.stream, connection.buffer, parser, use);
        answered = read > 0 || !read_error;
        if (read_error) {
            co_return unexpected(network_error(read_error, "receive"));
        }
        auto [body_error, body] = co_await http::async_read(connection.stream, connection.buffer, parser, use);
        if (body_error) {
            co_return unexpected(network_error(body_error, "receive"));
        }
        co_return Result<void>{};
    }

    Task<Result<json::Document>> send_once(const ApiRequest& request, SteadyPoint deadline, unsigned& status) {
        Head head = head_of(request);
        ConnectionPtr connection = take_idle();
        for (bool fresh = connection == nullptr;; fresh = true) {
            if (fresh) {
                auto connecting = connect(deadline);
                auto connected = co_await std::move(connecting);
                if (!connected) {
                    co_return unexpected(std::move(connected).error());
                }
                connection = std::move(*connected);
            }
            Parser parser;
            parser.body_limit(answer_bytes_max);
            bool answered = false;
            auto exchanging = exchange(*connection, head, parser, deadline, answered);
            const Result<void> done = co_await std::move(exchanging);
            if (!done) {
                if (!fresh && !answered && done.error().code() == ErrorCode::unavailable) {
                    continue;  // the server had closed a connection that we had kept
                }
                co_return unexpected(Error{done.error()});
            }
            auto response = parser.release();
            status = response.result_int();
            const auto retry_after = retry_after_of(response);
            if (response.keep_alive()) {
                connection->last_used = now();
                connection->expires_at(SteadyPoint::max());
                idle.push_back(std::move(connection));
            }
            if (status < 200 || status > 299) {
                co_return unexpected(error_of_answer(status, response.body(), retry_after));
            }
            auto document = json::Document::from(response.body(), answer_limits);
            if (!document) {
                co_return failure(ErrorCode::internal,
                                  "the API server's answer is no JSON: " + document.error().message());
            }
            co_return std::move(*document);
        }
    }
};

ApiClient::ApiClient(asio::any_io_executor executor, ClusterAccess access, ApiClientOptions options)
    : state_(std::make_unique<State>()) {
    state_->executor = std::move(executor);
    state_->access = std::move(access);
    state_->options = std::move(options);
}
ApiClient::~ApiClient() = default;

const ClusterAccess& ApiClient::access() const noexcept {
    return state_->access;
}

const asio::any_io_executor& ApiClient::executor() const noexcept {
    return state_->executor;
}

Task<Result<json::Document>> ApiClient::send(ApiRequest request, SteadyPoint deadline) {
    State& s = *state_;
    s.reread(false);
    const std::string what = std::string(to_string(request.verb)) + " " + request.target.substr(0, 200);
    auto entering = s.enter(deadline);
    if (!co_await std::move(entering)) {
        co_return unexpected(Error{ErrorCode::deadline, "waited in vain for a free connection"}.with(what));
    }
    unsigned status = 0;
    auto sending = s.send_once(request, deadline, status);
    Result<json::Document> answer = co_await std::move(sending);
    if (!answer && status == 401) {
        s.reread(true);
        s.idle.clear();
        auto again = s.send_once(request, deadline, status);
        answer = co_await std::move(again);
    }
    s.leave();
    if (!answer) {
        co_return unexpected(std::move(answer).error().with(what));
    }
    co_return answer;
}

Task<Result<std::unique_ptr<WatchStream>>> ApiClient::watch(ApiRequest request, SteadyPoint deadline) {
    State& s = *state_;
    const std::string what = "watch " + request.target.substr(0, 200);
    for (int attempt = 0;; ++attempt) {
        s.reread(attempt > 0);
        Head head = s.head_of(request);
        auto connecting = s.connect(deadline);
        auto connected = co_await std::move(connecting);
        if (!connected) {
            co_return unexpected(std::move(connected).error().with(what));
        }
        auto state = std::make_unique<WatchStream::State>();
        state->connection = std::move(*connected);
        Connection& connection = *state->connection;
        state->parser.body_limit(boost::none);
        connection.expires_at(deadline);
        auto [write_error, written] = co_await http::async_write(connection.stream, head, use);
        if (write_error) {
            co_return unexpected(network_error(write_error, what));
        }
        auto [read_error, read] =
            co_await http::async_read_header(connection.stream, connection.buffer, state->parser, use);
        if (read_error) {
            co_return unexpected(network_error(read_error, what));
        }
        const unsigned status = state->parser.get().result_int();
        const auto retry_after = retry_after_of(state->parser.get());
        auto stream = std::make_unique<WatchStream>(std::move(state));
        if (status == 200) {
            co_return stream;
        }
        if (status == 401 && attempt == 0) {
            continue;
        }
        // The whole answer is one Status, with a newline behind it or at its end.
        auto reading = stream->next(deadline);
        const auto body = co_await std::move(reading);
        const std::string text = body && *body ? json::to_text((*body)->root()) : "";
        co_return unexpected(error_of_answer(status, text, retry_after).with(what));
    }
}

Task<Result<std::string>> ApiClient::list(ApiResource resource, std::string namespace_, SteadyPoint deadline,
                                          std::function<void(json::Value)> take) {
    std::string token;
    for (;;) {
        auto sending = send(list_request(resource, namespace_, list_page_size, token), deadline);
        auto page = co_await std::move(sending);
        if (!page) {
            co_return unexpected(std::move(page).error());
        }
        for (const json::Value item : page->root().at("items").elements()) {
            take(item);
        }
        const json::Value metadata = page->root().at("metadata");
        token = metadata.at("continue").string_or("");
        if (token.empty()) {
            co_return std::string(metadata.at("resourceVersion").string_or(""));
        }
    }
}

}  // namespace ossa::kube
