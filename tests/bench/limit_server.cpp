// limit_server: the limit that our webhook is measured against. A bare Beast server over asio::ssl that reads a
// request's body and gives a fixed answer; it shares no code with net/. Tuned: read buffer reserved, one io_context a
// thread, concrete executors, handler memory kept with the session, no per-request allocation, answer in one buffer and
// one write.
#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;

namespace {

// Memory for the operations of one session: a handful of blocks, used again and again.
class OperationMemory {
  public:
    void* take(std::size_t bytes) {
        for (Block& block : blocks_) {
            if (!block.used && bytes <= sizeof block.bytes) {
                block.used = true;
                return block.bytes;
            }
        }
        return ::operator new(bytes);
    }
    void give_back(void* at) {
        for (Block& block : blocks_) {
            if (at == block.bytes) {
                block.used = false;
                return;
            }
        }
        ::operator delete(at);
    }

  private:
    struct Block {
        alignas(std::max_align_t) std::byte bytes[1024];
        bool used = false;
    };
    Block blocks_[4];
};

template <class T>
struct OperationAllocator {
    using value_type = T;
    explicit OperationAllocator(OperationMemory& memory_in) : memory(&memory_in) {}
    template <class U>
    OperationAllocator(const OperationAllocator<U>& other) : memory(other.memory) {}
    T* allocate(std::size_t n) { return static_cast<T*>(memory->take(n * sizeof(T))); }
    void deallocate(T* at, std::size_t) { memory->give_back(at); }
    template <class U>
    bool operator==(const OperationAllocator<U>& other) const {
        return memory == other.memory;
    }
    OperationMemory* memory;
};

class Session : public std::enable_shared_from_this<Session> {
  public:
    Session(Socket socket, asio::ssl::context& context, const std::string& answer)
        : stream_(std::move(socket), context), answer_(answer) {
        buffer_.reserve(128 * 1024);
    }
    void start() { stream_.async_handshake(asio::ssl::stream_base::server, on(&Session::on_handshake)); }

  private:
    using Method = void (Session::*)(error_code, std::size_t);
    struct Handler {
        using allocator_type = OperationAllocator<void>;
        std::shared_ptr<Session> session;
        Method method;
        allocator_type get_allocator() const noexcept { return allocator_type{session->memory_}; }
        void operator()(error_code ec, std::size_t bytes = 0) {
            if (!ec) {
                ((*session).*method)(ec, bytes);
            }
        }
    };
    Handler on(Method method) { return {shared_from_this(), method}; }

    void on_handshake(error_code, std::size_t) { read(); }
    void read() {
        parser_.emplace(std::piecewise_construct, std::make_tuple(std::move(body_)));
        parser_->get().body().clear();
        parser_->body_limit(8U << 20U);
        http::async_read(stream_, buffer_, *parser_, on(&Session::on_read));
    }
    void on_read(error_code, std::size_t) {
        body_ = std::move(parser_->get().body());
        // The uid of the review, in the place where the fixed answer has room for it.
        const std::size_t at = body_.find("\"uid\":\"");
        if (at != std::string::npos && at + 43 <= body_.size() && answer_.size() >= 36) {
            answer_.replace(answer_.find("\r\n\r\n") + 4, 36, body_, at + 7, 36);
        }
        asio::async_write(stream_, asio::buffer(answer_), on(&Session::on_write));
    }
    void on_write(error_code, std::size_t) { read(); }

    OperationMemory memory_;
    asio::ssl::stream<Socket> stream_;
    boost::beast::flat_buffer buffer_;
    std::string body_;
    std::optional<http::request_parser<http::string_body>> parser_;
    std::string answer_;
};

class Listener {
  public:
    Listener(asio::io_context& context, asio::ssl::context& tls, const asio::ip::tcp::endpoint& at,
             const std::string& answer)
        : acceptor_(context), tls_(tls), answer_(answer) {
        acceptor_.open(at.protocol());
        acceptor_.set_option(asio::socket_base::reuse_address{true});
        const int on = 1;
        ::setsockopt(acceptor_.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        acceptor_.bind(at);
        acceptor_.listen();
        accept();
    }

  private:
    void accept() {
        acceptor_.async_accept([this](error_code ec, Socket socket) {
            if (!ec) {
                socket.set_option(asio::ip::tcp::no_delay{true});
                std::make_shared<Session>(std::move(socket), tls_, answer_)->start();
            }
            accept();
        });
    }
    asio::basic_socket_acceptor<asio::ip::tcp, Executor> acceptor_;
    asio::ssl::context& tls_;
    const std::string& answer_;
};

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"a tuned bare Beast TLS server"};
    unsigned short port = 0;
    unsigned threads = 1;
    std::size_t answer_bytes = 300;
    std::string certificate;
    std::string key;
    app.add_option("--port", port)->required();
    app.add_option("--cert", certificate)->required();
    app.add_option("--key", key)->required();
    app.add_option("--answer-bytes", answer_bytes);
    app.add_option("--threads", threads);
    CLI11_PARSE(app, argc, argv);
    std::signal(SIGPIPE, SIG_IGN);

    asio::ssl::context tls{asio::ssl::context::tls_server};
    tls.use_certificate_chain_file(certificate);
    tls.use_private_key_file(key, asio::ssl::context::pem);
    SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
    SSL_CTX_set_session_cache_mode(tls.native_handle(), SSL_SESS_CACHE_OFF);
    const std::string answer =
        "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: application/json\r\n"
        "Content-Length: " +
        std::to_string(answer_bytes) + "\r\n\r\n" + std::string(answer_bytes, 'x');
    const asio::ip::tcp::endpoint at{asio::ip::address_v4::loopback(), port};
    std::vector<std::thread> pool;
    for (unsigned i = 0; i < std::max(1U, threads); ++i) {
        pool.emplace_back([&] {
            asio::io_context context{1};
            const Listener listener{context, tls, at, answer};
            context.run();
        });
    }
    for (std::thread& thread : pool) {
        thread.join();
    }
    return 0;
}
