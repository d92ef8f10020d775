// load: a load generator for one TLS server, on one thread.
// Closed loop (default): every connection sends its next request when its answer is there. Open loop (--rate): requests
// are due at fixed times whatever the server does, and latency counts from the due time, so that a stall is not hidden.
// Every request carries a uid of its own, and every answer must be a 200 that carries it. With --pid the server's CPU
// time is read at the beginning and the end of the measured window. Prints one line of JSON.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Options {
    std::string target;
    std::string path = "/";
    std::string body_file;
    unsigned connections = 1;
    double seconds = 5;
    double warmup = 0.5;
    double rate = 0;
    int pid = 0;
};

[[noreturn]] void die(const std::string& why) {
    std::fprintf(stderr, "load: %s\n", why.c_str());
    std::exit(2);
}

std::int64_t cpu_ns(int pid) {
    clockid_t clock{};
    timespec time{};
    if (pid == 0) {
        return 0;
    }
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
        die("no CPU clock of process " + std::to_string(pid));
    }
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// What is sent: one text for all connections, with the place of the uid.
struct Request {
    std::string text;
    std::size_t uid_at = 0;
    std::uint64_t count = 0;
    static constexpr std::size_t uid_size = 36;

    // Gives the next request its own uid: the last 12 digits count.
    std::string_view next() {
        char digits[13];
        std::snprintf(digits, sizeof digits, "%012llx", static_cast<unsigned long long>(++count));
        std::memcpy(text.data() + uid_at + 24, digits, 12);
        return {text.data() + uid_at, uid_size};
    }
};

Request make_request(const Options& options) {
    std::ifstream file{options.body_file, std::ios::binary};
    const std::string body{std::istreambuf_iterator<char>{file}, {}};
    if (!file || body.empty()) {
        die("cannot read " + options.body_file);
    }
    Request out;
    out.text = "POST " + options.path + "?timeout=5s HTTP/1.1\r\nHost: " + options.target +
               "\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n";
    const std::size_t uid = body.find("\"uid\":\"");
    if (uid == std::string::npos) {
        die("no \"uid\" in " + options.body_file);
    }
    out.uid_at = out.text.size() + uid + 7;
    out.text += body;
    return out;
}

struct Connection {
    int fd = -1;
    SSL* ssl = nullptr;
    std::string uid;
    std::string unsent;
    std::size_t sent = 0;
    std::string answer;
    std::size_t head_size = 0;  // 0: not yet there
    std::size_t answer_size = 0;
    Clock::time_point due;
    bool busy = false;
    bool wants_write = false;
};

class Load {
  public:
    explicit Load(Options options)
        : options_(std::move(options)), request_(make_request(options_)), connections_(options_.connections) {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        context_ = SSL_CTX_new(TLS_client_method());
        // What the API server's TLS library prefers.
        SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256");
        SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_read_ahead(context_, 1);
        latencies_.reserve(1U << 20U);
        for (std::size_t i = 0; i < connections_.size(); ++i) {
            connect(connections_[i], i);
        }
    }

    int run() {
        const auto begin = Clock::now();
        window_begin_ = begin + seconds(options_.warmup);
        window_end_ = window_begin_ + seconds(options_.seconds);
        next_due_ = begin;
        if (options_.rate <= 0) {
            for (Connection& it : connections_) {
                send(it, Clock::now());
            }
        } else {
            for (Connection& it : connections_) {
                free_.push_back(&it);
            }
        }
        std::int64_t cpu = 0;
        bool measuring = false;
        std::vector<epoll_event> events(256);
        for (auto now = Clock::now(); now < window_end_; now = Clock::now()) {
            if (!measuring && now >= window_begin_) {
                measuring = true;
                measured_from_ = now;
                cpu = cpu_ns(options_.pid);
                latencies_.clear();
            }
            offer(now);
            const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms(now));
            for (int i = 0; i < count; ++i) {
                on_event(connections_[events[static_cast<std::size_t>(i)].data.u64],
                         events[static_cast<std::size_t>(i)].events);
            }
        }
        const double window = std::chrono::duration<double>(Clock::now() - measured_from_).count();
        const double cpu_us = static_cast<double>(cpu_ns(options_.pid) - cpu) / 1e3;
        report(window, cpu_us);
        return errors_ == 0 ? 0 : 1;
    }

  private:
    static Clock::duration seconds(double s) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
    }

    void connect(Connection& it, std::size_t index) {
        const std::size_t colon = options_.target.rfind(':');
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(options_.target.substr(colon + 1))));
        if (::inet_pton(AF_INET, options_.target.substr(0, colon).c_str(), &address.sin_addr) != 1) {
            die("--target must be an IPv4 address and port");
        }
        it.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (::connect(it.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            die("cannot connect to " + options_.target + ": " + std::strerror(errno));
        }
        const int on = 1;
        ::setsockopt(it.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        it.ssl = SSL_new(context_);
        SSL_set_fd(it.ssl, it.fd);
        if (SSL_connect(it.ssl) != 1) {
            die("TLS handshake with " + options_.target + " failed");
        }
        ::fcntl(it.fd, F_SETFL, ::fcntl(it.fd, F_GETFL) | O_NONBLOCK);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = index;
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, it.fd, &event);
    }

    // Open loop: what is due is sent when a connection is free, else it waits, and its clock runs.
    void offer(Clock::time_point now) {
        if (options_.rate <= 0) {
            return;
        }
        while (next_due_ <= now) {
            waiting_.push_back(next_due_);
            next_due_ += seconds(1 / options_.rate);
        }
        while (!waiting_.empty() && !free_.empty()) {
            Connection& it = *free_.back();
            free_.pop_back();
            send(it, waiting_.front());
            waiting_.pop_front();
        }
    }

    int timeout_ms(Clock::time_point now) const {
        // Closed loop: never sleep. A sleeping peer on the same machine has to be woken by the server's write (an IPI,
        // 3 to 5 us on a virtual machine), the more often the slower the server is; no peer across a network costs
        // that.
        if (options_.rate <= 0) {
            return 0;
        }
        return next_due_ - now > 2ms ? 1 : 0;  // close to the due time we spin: this core is ours
    }

    void send(Connection& it, Clock::time_point due) {
        it.busy = true;
        it.due = due;
        it.uid = request_.next();
        it.answer.clear();
        it.head_size = it.answer_size = 0;
        it.sent = 0;
        write(it);
    }

    void write(Connection& it) {
        // The text is shared: its uid changes with the next request, so a write that blocks keeps a copy.
        const std::string& text = it.unsent.empty() ? request_.text : it.unsent;
        while (it.sent < text.size()) {
            std::size_t done = 0;
            const int result = SSL_write_ex(it.ssl, text.data() + it.sent, text.size() - it.sent, &done);
            if (result != 1) {
                if (SSL_get_error(it.ssl, result) != SSL_ERROR_WANT_WRITE) {
                    die("the server closed a connection");
                }
                if (it.unsent.empty()) {
                    it.unsent = request_.text;
                }
                watch(it, true);
                return;
            }
            it.sent += done;
        }
        it.unsent.clear();
        watch(it, false);
    }

    void watch(Connection& it, bool for_writing) {
        if (it.wants_write != for_writing) {
            it.wants_write = for_writing;
            epoll_event event{};
            event.events =
                for_writing ? static_cast<std::uint32_t>(EPOLLIN | EPOLLOUT) : static_cast<std::uint32_t>(EPOLLIN);
            event.data.u64 = static_cast<std::uint64_t>(&it - connections_.data());
            ::epoll_ctl(epoll_, EPOLL_CTL_MOD, it.fd, &event);
        }
    }

    void on_event(Connection& it, std::uint32_t events) {
        if ((events & EPOLLOUT) != 0) {
            write(it);
        }
        if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) {
            return;
        }
        for (;;) {
            char block[32768];
            std::size_t got = 0;
            const int result = SSL_read_ex(it.ssl, block, sizeof block, &got);
            if (result != 1) {
                if (SSL_get_error(it.ssl, result) != SSL_ERROR_WANT_READ) {
                    die("the server closed a connection");
                }
                return;
            }
            it.answer.append(block, got);
            if (complete(it)) {
                on_answer(it);
                return;
            }
        }
    }

    static bool complete(Connection& it) {
        if (it.head_size == 0) {
            const std::size_t end = it.answer.find("\r\n\r\n");
            if (end == std::string::npos) {
                return false;
            }
            it.head_size = end + 4;
            const std::size_t length = it.answer.find("Content-Length: ");
            if (length == std::string::npos || length > end) {
                die("an answer without Content-Length");
            }
            std::size_t body = 0;
            std::from_chars(it.answer.data() + length + 16, it.answer.data() + end, body);
            it.answer_size = it.head_size + body;
        }
        return it.answer.size() >= it.answer_size;
    }

    void on_answer(Connection& it) {
        const auto now = Clock::now();
        const bool good = it.answer.compare(0, 13, "HTTP/1.1 200 ") == 0 && it.answer.size() == it.answer_size &&
                          it.answer.find(it.uid, it.head_size) != std::string::npos;
        if (!good) {
            if (errors_++ == 0) {
                std::fprintf(stderr, "load: bad answer, uid %s: %.400s\n", it.uid.c_str(), it.answer.c_str());
            }
        }
        latencies_.push_back(static_cast<std::uint32_t>(
            std::min<std::int64_t>(std::chrono::nanoseconds{now - it.due}.count(), UINT32_MAX)));
        it.busy = false;
        if (options_.rate <= 0) {
            send(it, now);
        } else {
            free_.push_back(&it);
        }
    }

    void report(double window, double cpu_us) {
        std::sort(latencies_.begin(), latencies_.end());
        const auto at = [&](double part) {
            if (latencies_.empty()) {
                return 0.0;
            }
            const auto index = static_cast<std::size_t>(part * static_cast<double>(latencies_.size() - 1));
            return static_cast<double>(latencies_[index]) / 1e3;
        };
        const auto count = static_cast<double>(latencies_.size());
        std::printf(
            "{\"requests\":%zu,\"seconds\":%.3f,\"rps\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
            "\"max_us\":%.1f,\"errors\":%llu,\"unsent\":%zu,\"cpu_us_per_request\":%.3f}\n",
            latencies_.size(), window, count / window, at(0.5), at(0.99), at(0.999), at(1.0),
            static_cast<unsigned long long>(errors_), waiting_.size(), latencies_.empty() ? 0.0 : cpu_us / count);
    }

    Options options_;
    Request request_;
    std::vector<Connection> connections_;
    std::vector<Connection*> free_;
    std::deque<Clock::time_point> waiting_;
    std::vector<std::uint32_t> latencies_;
    Clock::time_point window_begin_;
    Clock::time_point window_end_;
    Clock::time_point measured_from_;
    Clock::time_point next_due_;
    SSL_CTX* context_ = nullptr;
    std::uint64_t errors_ = 0;
    int epoll_ = -1;
};

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"load generator over TLS keep-alive connections"};
    Options options;
    app.add_option("--target", options.target, "IPv4:PORT")->required();
    app.add_option("--path", options.path);
    app.add_option("--body", options.body_file, "file with an AdmissionReview that has a uid of 36 characters")
        ->required();
    app.add_option("--connections", options.connections);
    app.add_option("--seconds", options.seconds);
    app.add_option("--warmup", options.warmup);
    app.add_option("--rate", options.rate, "requests a second, open loop; 0: closed loop");
    app.add_option("--pid", options.pid, "process whose CPU time is measured");
    CLI11_PARSE(app, argc, argv);
    std::signal(SIGPIPE, SIG_IGN);
    Load load{options};
    return load.run();
}
