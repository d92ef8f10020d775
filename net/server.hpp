// HttpServer: HTTP/1.1 over TLS or plain TCP, keep-alive, on N worker threads.
// One acceptor (on worker 0) deals connections round robin; a connection stays on its thread, with an io_context of its
// own, so handlers of one worker never run at once. Every bound is in net/limits.hpp; every answer that the server
// itself gives is a short text. A request is refused as early as its head allows: 404, 405, 415, 413 come before the
// body is read. Memory: an idle connection holds no buffer; one that reads has 16 KiB and grows only with what has
// arrived. Threads: start, drain, stop and the destructor belong to the owner; hurry() may be called anywhere. Not
// promised: HTTP/2, upgrades, compressed or multipart bodies, request trailers (read and dropped).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "net/limits.hpp"
#include "net/request.hpp"
#include "net/tls.hpp"

namespace ossa::net {

class Metrics;

struct Route {
    Method method = Method::get;
    std::string path;          // matched exactly
    std::string content_type;  // "": any; else the request's must be this (parameters such as charset are let through)
    Handler handler;
};

struct ServerOptions {
    std::string address = "127.0.0.1:0";  // HOST:PORT, numeric or a name; [::1]:PORT; ":PORT" is every interface
    unsigned workers = 1;
    Limits limits;
    std::shared_ptr<IdentityCell> identity;  // none: plain HTTP
    std::vector<Route> routes;
    Metrics* metrics = nullptr;  // outlives the server
    std::string name = "http";   // the label "listener" of its metrics, and in logs
};

class HttpServer {
  public:
    explicit HttpServer(ServerOptions options);
    ~HttpServer();  // stops
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    // Listens and starts the threads. Errors: invalid (address), unavailable (cannot listen).
    Result<void> start();
    std::uint16_t port() const noexcept;

    // Ends without losing a call: for `grace` it goes on accepting and serving, every answer says Connection: close;
    // then it accepts nothing more, closes idle connections and waits for those in flight, at most limits.drain_max.
    // Blocks until the threads have ended. `hurry` is asked a few times a second; true ends everything at once.
    void drain(std::chrono::milliseconds grace, const std::function<bool()>& hurry = {});
    // Ends everything at once: what is in flight is cut.
    void stop();

    std::size_t connections() const noexcept;
    std::size_t inflight_bytes() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

// A write to a connection that the peer has closed must be an error code, not the end of the process. start() calls it.
void ignore_sigpipe() noexcept;

}  // namespace ossa::net
