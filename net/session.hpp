// Session: one connection, from its handshake to its end. Worker: one thread, its io_context and its sessions.
// Private to net. Everything here belongs to the worker's thread, apart from what says otherwise.
//
//   handshake -> idle -> head -> body -> (handler) -> [deferred] -> [writing] -> idle | lingering -> closed
//
// A session waits for one thing at a time and has no timer: the worker's tick looks at all deadlines. The socket is
// read and written directly (net/stream.hpp), so the usual request costs a share of one wait for all that is ready, one
// read and one write, and no allocation: the buffer comes from the worker's pool.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/buffer.hpp"
#include "net/metrics.hpp"
#include "net/request_head.hpp"
#include "net/server.hpp"
#include "net/stream.hpp"

namespace ossa::net {

class Session;
class Worker;

// The server's metrics, looked up once. Any thread.
struct ServerMetrics {
    ServerMetrics(Metrics& metrics, const std::string& listener);
    void count_answer(unsigned status) noexcept;

    Gauge& connections_open;
    Counter& connections;
    Counter& connections_refused;
    Counter& handshakes_failed;
    Gauge& inflight_requests;
    Counter& read_bytes;
    Counter& written_bytes;
    std::array<Counter*, 500> by_status;  // by status - 100
};

// What all workers of one server share. Any thread.
struct Shared : std::enable_shared_from_this<Shared> {
    explicit Shared(ServerOptions options_in);

    enum class Phase : std::uint8_t { serving, closing, finishing };

    ServerOptions options;
    std::unique_ptr<Metrics> own_metrics;  // when the owner gave none
    ServerMetrics metrics;
    ByteBudget budget;
    std::atomic<std::size_t> connections{0};
    std::atomic<Phase> phase{Phase::serving};
};

// A request that is answered later, and the memory it lives in. Belongs to whoever holds it.
struct Deferred {
    std::shared_ptr<Shared> shared;  // first: the charge ends before its budget
    std::weak_ptr<Worker> worker;
    std::size_t slot = 0;
    std::uint64_t serial = 0;
    Request request;
    Response response;
    Buffer buffer;
    Charge charge;

    static void give_back(std::unique_ptr<Deferred> deferred);
};

// An open descriptor.
class Descriptor {
  public:
    explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor() { close(); }
    int get() const noexcept { return fd_; }
    void close() noexcept;

  private:
    int fd_;
};

class Session {
  public:
    Session(Worker& worker, std::size_t slot, std::uint64_t serial, Descriptor socket, SSL* ssl);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void start();
    void on_tick(SteadyPoint now);
    void finish_if_idle(SteadyPoint now);  // the server's end: no further request will be waited for
    void cut();                            // close now
    void on_deferred_answer(std::unique_ptr<Deferred> deferred);
    bool removable() const noexcept { return state_ == State::closed && !posted_; }
    void on_ready();  // the socket has what was waited for, or is broken

    std::unique_ptr<Deferred> defer(Request& request, Response& response);
    boost::asio::io_context& context() noexcept;
    std::size_t slot() const noexcept { return slot_; }
    std::uint64_t serial() const noexcept { return serial_; }

  private:
    enum class State : std::uint8_t { handshake, idle, head, body, deferred, writing, lingering, closed };
    enum class Next : std::uint8_t { read, again, stop };
    struct Unsent {  // of an answer that the socket did not take at once
        std::string first;
        std::size_t first_at = 0;
        std::string body;
        std::size_t body_at = 0;
    };

    void wait_readable();
    void wait_writable();
    void wait_for(std::uint32_t events);
    void resume();
    void yield();

    bool shake_hands();
    void run();
    Next step();
    Next on_head();
    bool body_is_complete(Next& refused);
    Next handle();
    Next answer(Response& response, std::string_view allow = {});
    Next refuse(unsigned status, std::string_view reason, std::string_view allow = {});
    Next write_out(std::string_view first, std::string& body, std::size_t body_at);
    bool continue_writing();
    Next finish_answer();
    bool make_room();
    void send_continue();
    void begin_request(SteadyPoint now);
    void park();
    void release_buffer();
    void end_request();
    void uncount() noexcept;

    void linger();
    void drop_input();
    void close(std::string_view reason);
    std::string peer() const;
    std::string_view bytes() const noexcept { return {buffer_.data(), used_}; }

    Worker& worker_;
    const Shared& shared_;
    Descriptor socket_;
    Stream stream_;
    SteadyPoint deadline_{};
    SteadyPoint arrived_{};
    Buffer buffer_;
    Charge charge_;
    std::size_t used_ = 0;         // bytes in buffer_
    std::size_t body_end_ = 0;     // chunked: decoded so far
    std::size_t raw_ = 0;          // chunked: read so far
    std::size_t request_end_ = 0;  // where the next request begins; 0 while unknown
    std::optional<RequestHead> head_;
    std::optional<ChunkedBody> chunks_;
    const Route* route_ = nullptr;
    std::unique_ptr<Unsent> unsent_;
    std::size_t lingered_ = 0;
    const std::size_t slot_;
    const std::uint64_t serial_;
    unsigned answer_status_ = 0;
    State state_ = State::handshake;
    bool close_after_ = false;
    bool counted_inflight_ = false;
    bool served_ = false;
    bool posted_ = false;
    std::uint32_t watched_ = 0;  // for which events the worker watches the socket
};

class Worker : public std::enable_shared_from_this<Worker> {
  public:
    Worker(std::shared_ptr<Shared> shared, unsigned index);
    ~Worker();

    // Any thread.
    boost::asio::io_context& context() noexcept { return io_; }
    void post_adopt(int fd);  // takes a connected socket
    void post_finish();       // ends when the last session has
    void post_cut();          // ends now

    // The thread's whole life.
    void run();

    unsigned index() const noexcept { return index_; }
    Shared& shared() noexcept { return *shared_; }
    BufferPool& pool() noexcept { return pool_; }
    std::array<char, 16384>& stage() noexcept { return stage_; }  // where an answer is put together
    Response& response() noexcept { return response_; }
    std::string_view date(SteadyPoint now) noexcept;

    void adopt(int fd);  // the same, on this thread
    void remove_if_done(Session& session);
    Session* find(std::size_t slot, std::uint64_t serial) noexcept;
    int poller() const noexcept { return poller_.native_handle(); }

  private:
    class Arrival;
    void watch();
    void on_events();
    Session* at_slot(std::size_t slot) noexcept;
    void adopt(Arrival arrival);
    void arm_tick();
    void on_tick(const boost::system::error_code& ec);
    void finish();
    void cut();
    void end_if_empty();
    template <class F>
    void for_each_session(F&& f);

    std::shared_ptr<Shared> shared_;
    const unsigned index_;
    boost::asio::io_context io_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
    boost::asio::basic_waitable_timer<std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>,
                                      boost::asio::io_context::executor_type>
        ticker_;
    // Which sessions' sockets are ready: an epoll of our own, level-triggered, below Asio's. There a socket that is
    // waited for again, for the same events, costs no system call; with async_wait it is an epoll_ctl for every
    // request.
    mutable boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type> poller_;
    std::chrono::milliseconds tick_;
    bool ticking_ = false;
    bool finishing_ = false;
    std::vector<std::unique_ptr<Session>> sessions_;
    std::vector<std::size_t> free_slots_;
    std::size_t count_ = 0;
    std::uint64_t serial_ = 0;
    BufferPool pool_;
    Response response_;
    std::array<char, 16384> stage_{};
    std::array<char, 40> date_{};
    std::size_t date_length_ = 0;
    SteadyPoint date_until_{};
};

}  // namespace ossa::net
