// Request, Response and how a handler answers: now or later.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace boost::asio {
class io_context;
}

namespace ossa::net {

using SteadyPoint = std::chrono::steady_clock::time_point;

enum class Method : std::uint8_t { get, head, post, put, patch, delete_, options, other };
std::string_view to_string(Method method) noexcept;

// What came in. All views live until the handler returns or, after Exchange::defer, as long as the Responder.
struct Request {
    Method method = Method::other;
    std::string_view target;  // as sent: path?query
    std::string_view path;
    std::string_view query;  // behind "?", not decoded
    std::string_view content_type;
    std::string_view body;  // at least body_padding readable bytes follow it
    SteadyPoint arrived;    // when the request's first byte was read
    unsigned worker = 0;    // 0 .. workers-1: an index into state that a handler keeps for each worker thread

    static constexpr std::size_t body_padding = 64;

    // The value of the first such parameter; "" when it has none. Not percent-decoded.
    std::optional<std::string_view> parameter(std::string_view name) const noexcept;
};

// What goes out. `body` keeps its memory from request to request: append to it, do not swap it.
struct Response {
    unsigned status = 200;
    std::string_view content_type = "application/json";  // a literal or something else that outlives the answer
    std::string body;
    std::optional<unsigned> retry_after_seconds;
    bool close = false;  // end the connection behind this answer

    void reset() noexcept;
    void plain(unsigned code, std::string_view text);
};

class Worker;
struct Deferred;

// The duty to answer one request later. Move-only. The answer is sent by send(); a Responder that ends without it
// answers 500 and counts a bug. send() may be called on any thread, and after the connection, or the server, has gone:
// then nothing happens. When limits.answer_deadline passes first, the server has answered 504 and send() does nothing.
class Responder {
  public:
    explicit Responder(std::unique_ptr<Deferred> deferred) noexcept;
    Responder(Responder&&) noexcept;
    Responder& operator=(Responder&&) noexcept;
    ~Responder();

    const Request& request() const noexcept;
    Response& response() noexcept;
    void send() &&;

  private:
    void finish() noexcept;
    std::unique_ptr<Deferred> deferred_;
};

// One request in the hands of its handler.
class Exchange {
  public:
    const Request& request() const noexcept { return request_; }
    Response& response() noexcept { return response_; }

    // Answers later: the request's memory and what response() holds so far move into the Responder. After this call
    // only the Responder may be used, not this Exchange.
    Responder defer();
    // The worker thread's own io_context, to start asynchronous work on; it runs as long as the server.
    boost::asio::io_context& context() noexcept;

  private:
    friend class Session;
    Exchange(class Session& session, const Request& request, Response& response) noexcept
        : session_(session), request_(request), response_(response) {}
    class Session& session_;
    Request request_;
    Response& response_;
    bool deferred_ = false;
};

// Runs on the worker thread of the connection; it should not block. When it returns without defer(), response() is
// sent. When it throws, 500 is sent, the bug is counted, and the connection lives on.
using Handler = std::function<void(Exchange&)>;

}  // namespace ossa::net
