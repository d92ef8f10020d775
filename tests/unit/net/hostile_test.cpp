// The server's behaviour towards peers that are broken or mean harm: an answer or a close within the deadline, no
// crash, no leak, memory within its bounds. Field reports R015 and R021 are here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <mutex>
#include <random>
#include <thread>

#include "net/log.hpp"
#include "net/metrics.hpp"
#include "net/server.hpp"
#include "support.hpp"

namespace ossa::net::test {
namespace {

using testing::HasSubstr;
using Mode = Client::Mode;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  // memory is not what it is in production
#else
constexpr bool sanitized = false;
#endif

class Hostile : public testing::Test {
  protected:
    void SetUp() override { ignore_sigpipe(); }

    void start(Mode mode, const std::function<void(ServerOptions&)>& change = {}) {
        ServerOptions options = test_options(mode);
        options.metrics = &metrics_;
        if (change) {
            change(options);
        }
        server_.emplace(std::move(options));
        ASSERT_TRUE(server_->start());
    }
    bool alive(Mode mode) {
        Client client{server_->port(), mode};
        const auto answer = client.ask(get("/hello"));
        return answer && answer->status == 200;
    }

    Metrics metrics_;
    std::optional<HttpServer> server_;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST_F(Hostile, R015_AChunkedBodyWithoutEndIsCutAtTheLimit) {
    start(Mode::tls);
    Client client{server_->port(), Mode::tls};
    const std::size_t before = resident_kib();
    ASSERT_TRUE(
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n"));
    const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
    std::size_t sent = 0;
    std::size_t most = 0;
    for (int i = 0; i < 1024; ++i) {  // 64 MiB
        if (!client.send(chunk)) {
            break;
        }
        sent += chunk.size();
        most = std::max(most, resident_kib());
    }
    const auto answer = client.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 413U);
    EXPECT_EQ(answer->field("Connection"), "close");
    EXPECT_TRUE(eventually([&] {
        return metrics_.text().find("ossa_http_requests_total{listener=\"http\",code=\"413\"} 1\n") !=
               std::string::npos;
    }));
    // 7 MiB judged, 1 MiB dropped, and what the kernel's socket buffers held.
    EXPECT_LT(sent, std::size_t{20} << 20U);
    if (!sanitized) {
        EXPECT_LT(most - std::min(most, before), std::size_t{16} << 10U);
    }
    client.close();
    EXPECT_TRUE(eventually([&] { return server_->inflight_bytes() == 0 && server_->connections() == 0; }));
    EXPECT_TRUE(alive(Mode::tls));
}

TEST_F(Hostile, R015_ADribbledRequestIsCut) {
    start(Mode::tls, [](ServerOptions& options) { options.limits.read_deadline = 300ms; });
    for (const std::string& text : {get("/hello") + std::string(1000, ' '), post("/echo", std::string(1000, 'x'))}) {
        Client client{server_->port(), Mode::tls};
        const auto begin = std::chrono::steady_clock::now();
        std::size_t sent = 0;
        // The first kind ends within its head: hold back its end.
        const std::string slow = text.starts_with("GET") ? text.substr(0, 20) + std::string(980, 'x') : text;
        while (sent < slow.size() && seconds_since(begin) < 8 && client.send(std::string_view{slow}.substr(sent, 1))) {
            ++sent;
            std::this_thread::sleep_for(20ms);
            if (seconds_since(begin) > 1) {
                break;
            }
        }
        const auto answer = client.receive();
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 408U);
        EXPECT_TRUE(client.wait_closed());
        EXPECT_LT(seconds_since(begin), 8);
    }
    EXPECT_TRUE(alive(Mode::tls));
}

// Two objects of 1.5 MB in one review are a usual update, not an attack.
TEST_F(Hostile, R015_AReviewWithTwoLargeObjectsIsTaken) {
    start(Mode::tls);
    Client client{server_->port(), Mode::tls};
    const auto answer = client.ask(post("/echo", std::string(3'100'000, 'x')));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200U);
}

TEST_F(Hostile, R021_ClientsThatLeaveWithinTheAnswerCostOneLineAndNoSocket) {
    std::mutex mutex;
    std::size_t lines = 0;
    start(Mode::tls, [](ServerOptions& options) { options.workers = 2; });
    ASSERT_TRUE(alive(Mode::tls));
    ASSERT_TRUE(eventually([&] { return server_->connections() == 0; }));
    const std::size_t descriptors = open_descriptors();
    set_log_sink([&](LogLevel, std::string_view line) {
        const std::lock_guard lock{mutex};
        lines += line.starts_with("connection closed") ? 1 : 0;
    });
    set_log_level(LogLevel::debug);
    constexpr std::size_t rounds = sanitized ? 300 : 1000;
    Client bystander{server_->port(), Mode::tls};
    for (std::size_t i = 0; i < rounds; ++i) {
        Client client{server_->port(), Mode::tls};
        ASSERT_TRUE(client.send(post("/big", "2000000")));
        if (i % 4 < 2) {  // with a part of the answer read, or none
            char block[1000];
            std::size_t got = 0;
            ASSERT_EQ(SSL_read_ex(client.ssl(), block, sizeof block, &got), 1);
        }
        if (i % 2 == 0) {
            client.reset();
        } else {
            client.close();
        }
        if (i % 100 == 0) {
            const auto answer = bystander.ask(get("/hello"));
            ASSERT_TRUE(answer);
        }
    }
    bystander.close();
    EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
    EXPECT_TRUE(eventually([&] { return open_descriptors() == descriptors; }));
    set_log_level(LogLevel::info);
    set_log_sink({});
    EXPECT_EQ(lines, rounds + 1);
    EXPECT_TRUE(alive(Mode::tls));
}

TEST_F(Hostile, GarbageOnTheTlsPortIsClosed) {
    start(Mode::tls, [](ServerOptions& options) { options.limits.handshake_deadline = 500ms; });
    std::minstd_rand random{7};
    std::string noise(5000, '\0');
    for (char& c : noise) {
        c = static_cast<char>(random() & 0xFFU);
    }
    for (const std::string& text :
         {noise, get("/hello"), std::string{"\x16\x03\x01\xff\xff"}, std::string{"\x15\x03\x03\x00\x02\x02\x28"},
          std::string(1, '\x16'), std::string(100'000, '\0')}) {
        Client client{server_->port(), Mode::plain, 5s};
        const auto begin = std::chrono::steady_clock::now();
        (void)client.send_raw(text);
        EXPECT_TRUE(client.wait_closed());
        EXPECT_LT(seconds_since(begin), 4);
    }
    EXPECT_THAT(metrics_.text(), HasSubstr("ossa_http_handshakes_failed_total{listener=\"http\"} 6\n"));
    EXPECT_TRUE(alive(Mode::tls));
}

TEST_F(Hostile, GarbageWithinTlsIsRefusedAndClosed) {
    start(Mode::tls);
    Client raw{server_->port(), Mode::tls};
    ASSERT_TRUE(raw.send_raw("not a record, and long enough to be judged"));
    EXPECT_TRUE(raw.wait_closed());
    Client client{server_->port(), Mode::tls};
    const auto answer = client.ask(std::string(1000, '\x01') + "\r\n\r\n");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 400U);
    EXPECT_TRUE(alive(Mode::tls));
}

TEST_F(Hostile, HalfOpenConnectionsAreClosedWithinTheirDeadlines) {
    start(Mode::tls, [](ServerOptions& options) {
        options.limits.handshake_deadline = 300ms;
        options.limits.idle_max = 600ms;
    });
    const auto begin = std::chrono::steady_clock::now();
    Client silent{server_->port(), Mode::plain, 8s};
    Client half_hello{server_->port(), Mode::plain, 8s};
    ASSERT_TRUE(half_hello.send_raw(std::string_view{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11}));
    Client idle{server_->port(), Mode::tls, 8s};
    ASSERT_TRUE(idle.connected());
    EXPECT_TRUE(silent.wait_closed());
    EXPECT_TRUE(half_hello.wait_closed());
    EXPECT_TRUE(idle.wait_closed());
    EXPECT_LT(seconds_since(begin), 6);
}

TEST_F(Hostile, AFlowOfKeyUpdatesStarvesNobody) {
    start(Mode::tls);
    std::atomic<bool> stop{false};
    std::thread flood{[&] {
        while (!stop) {
            Client client{server_->port(), Mode::tls, 2s};
            while (!stop && SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
                   SSL_do_handshake(client.ssl()) == 1) {
            }
        }
    }};
    Client client{server_->port(), Mode::tls};
    for (int i = 0; i < 200; ++i) {
        const auto answer = client.ask(get("/hello"));
        ASSERT_TRUE(answer) << i;
    }
    stop = true;
    flood.join();
}

TEST_F(Hostile, TruncatedBodiesAndFlowsOfBytesEndQuietly) {
    start(Mode::tls);
    for (int i = 0; i < 50; ++i) {
        Client client{server_->port(), Mode::tls};
        const std::string request = post("/echo", std::string(100'000, 'x'));
        ASSERT_TRUE(client.send(std::string_view{request}.substr(0, static_cast<std::size_t>(i) * 2011)));
        if (i % 2 == 0) {
            client.reset();
        }
    }
    EXPECT_TRUE(eventually([&] { return server_->connections() == 0 && server_->inflight_bytes() == 0; }));
    EXPECT_TRUE(alive(Mode::tls));
}

TEST_F(Hostile, AReaderThatStopsIsCutAtTheWriteDeadline) {
    start(Mode::tls, [](ServerOptions& options) { options.limits.write_deadline = 300ms; });
    Client client{server_->port(), Mode::tls};
    ASSERT_TRUE(client.send(post("/big", "30000000")));
    EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
    EXPECT_TRUE(alive(Mode::tls));
}

TEST_F(Hostile, SmugglingShapesEndTheConnection) {
    start(Mode::plain);
    const std::string fields = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    for (const std::string& text :
         {fields +
              "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n",
          fields + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + get("/hello"),
          fields + "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n" + get("/hello"),
          fields + "Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n" + get("/hello"),
          fields + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n" + get("/hello")}) {
        Client client{server_->port(), Mode::plain};
        const auto answer = client.ask(text);
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 400U);
        EXPECT_EQ(answer->field("Connection"), "close");
        EXPECT_FALSE(client.receive()) << "nothing behind it may be served";
    }
}

TEST_F(Hostile, AnErrorAnswerArrivesThoughThePeerIsStillSending) {
    start(Mode::tls, [](ServerOptions& options) { options.limits.body_bytes_max = 1000; });
    for (int i = 0; i < 50; ++i) {
        Client client{server_->port(), Mode::tls};
        ASSERT_TRUE(client.send(post("/echo", std::string(300'000, 'x'))));
        const auto answer = client.receive();
        ASSERT_TRUE(answer) << i;
        EXPECT_EQ(answer->status, 413U);
    }
}

// Whatever the bytes are, in whatever pieces: no crash (asan), and the server answers the next caller.
TEST_F(Hostile, RandomBytesDoNoHarm) {
    start(Mode::plain, [](ServerOptions& options) {
        options.limits.read_deadline = 1000ms;
        options.limits.linger_max = 100ms;
    });
    constexpr unsigned seed = 99;
    std::minstd_rand random{seed};
    const std::string seeds[] = {
        post("/echo", R"({"a":1})"), get("/hello") + get("/hello"),
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nhello\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n"};
    for (int round = 0; round < 1500; ++round) {
        std::string text = seeds[random() % 3];
        for (auto i = random() % 5; i != 0; --i) {
            const std::size_t at = random() % text.size();
            switch (random() % 3) {
                case 0: text[at] = static_cast<char>(random() & 0xFFU); break;
                case 1: text.erase(at, random() % 9); break;
                default: text.insert(at, text.substr(random() % text.size(), random() % 30)); break;
            }
            if (text.empty()) {
                text = "x";
            }
        }
        Client client{server_->port(), Mode::plain, 5s};
        const std::size_t cut = random() % text.size();
        (void)client.send(std::string_view{text}.substr(0, cut));
        (void)client.send(std::string_view{text}.substr(cut));
        ::shutdown(client.fd(), SHUT_WR);
        ASSERT_TRUE(client.wait_closed()) << "seed " << seed << " round " << round << ": " << text;
    }
    EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
    EXPECT_TRUE(alive(Mode::plain));
}

TEST_F(Hostile, AThousandIdleConnectionsStayWithinTheirMemory) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    constexpr std::size_t count = sanitized ? 200 : 1000;
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "TSan does not follow a fork";
#endif
    if (limit.rlim_cur < 2 * count + 100) {
        GTEST_SKIP() << "too few descriptors allowed";
    }
    // The server in a process of its own, so that the clients' memory is not counted.
    int to_parent[2];
    int to_child[2];
    ASSERT_EQ(::pipe(to_parent), 0);
    ASSERT_EQ(::pipe(to_child), 0);
    ::malloc_trim(0);  // memory that earlier tests gave back would hide what connections take
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(to_parent[0]);
        ::close(to_child[1]);  // so that it ends when the parent does
        ServerOptions options = test_options(Mode::tls);
        options.limits.idle_max = 1h;  // a slow machine may need long for the handshakes
        HttpServer server{std::move(options)};
        std::uint32_t report[2] = {0, 0};
        report[0] = server.start() ? server.port() : 0;
        (void)!::write(to_parent[1], report, sizeof report);
        for (char order = 0; ::read(to_child[0], &order, 1) == 1;) {
            report[0] = static_cast<std::uint32_t>(resident_kib());
            report[1] = static_cast<std::uint32_t>(server.connections());
            (void)!::write(to_parent[1], report, sizeof report);
        }
        ::_exit(0);
    }
    ::close(to_parent[1]);
    ::close(to_child[0]);
    std::uint32_t report[2] = {0, 0};
    ASSERT_EQ(::read(to_parent[0], report, sizeof report), static_cast<ssize_t>(sizeof report));
    const auto port = static_cast<std::uint16_t>(report[0]);
    const auto measure = [&] {
        (void)!::write(to_child[1], "m", 1);
        (void)!::read(to_parent[0], report, sizeof report);
        return report[0];
    };
    {
        Client warm{port, Mode::tls};
        ASSERT_TRUE(warm.ask(post("/echo", std::string(4000, 'x'))));
    }
    const std::uint32_t before = measure();
    std::vector<Client> clients;
    clients.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        clients.emplace_back(port, Mode::tls);
        ASSERT_TRUE(clients.back().ask(post("/echo", std::string(4000, 'x')))) << i;
    }
    const std::uint32_t after = measure();
    EXPECT_EQ(report[1], count);
    const double each = static_cast<double>(after - before) / static_cast<double>(count);
    RecordProperty("kib_per_idle_connection", std::to_string(each));
    std::printf("%.1f KiB an idle connection, %u KiB before\n", each, before);
    if (!sanitized) {
        EXPECT_LT(each, 64);
    }
    clients.clear();
    ::close(to_child[1]);
    ::close(to_parent[0]);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

// Out of descriptors: connections wait in the kernel's queue, the thread does not spin, and it goes on afterwards.
TEST_F(Hostile, OutOfDescriptorsItWaitsAndDoesNotSpin) {
    std::vector<Client> clients;
    start(Mode::plain);
    ASSERT_TRUE(alive(Mode::plain));
    set_log_sink([](LogLevel, std::string_view) {});
    Client waiting{server_->port(), Mode::plain};  // its own descriptor before they run out
    ASSERT_TRUE(waiting.ask(get("/hello")));
    const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
    rlimit old{};
    ::getrlimit(RLIMIT_NOFILE, &old);
    rlimit none = old;
    none.rlim_cur = static_cast<rlim_t>(raw);  // no descriptor above the ones in use
    std::vector<int> filled;
    ::setrlimit(RLIMIT_NOFILE, &none);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) {
        filled.push_back(fd);
    }
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    ::getpeername(waiting.fd(), reinterpret_cast<sockaddr*>(&address), &length);
    EXPECT_EQ(::connect(raw, reinterpret_cast<sockaddr*>(&address), length), 0);
    timespec cpu_before{};
    timespec cpu_after{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_before);
    std::this_thread::sleep_for(500ms);
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_after);
    const double cpu = static_cast<double>(cpu_after.tv_sec - cpu_before.tv_sec) +
                       static_cast<double>(cpu_after.tv_nsec - cpu_before.tv_nsec) / 1e9;
    EXPECT_LT(cpu, 0.1);
    EXPECT_TRUE(waiting.ask(get("/hello"))) << "others are served";
    for (const int fd : filled) {
        ::close(fd);
    }
    ::setrlimit(RLIMIT_NOFILE, &old);
    const std::string request = get("/hello");
    ASSERT_EQ(::send(raw, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    char block[1000];
    EXPECT_GT(::recv(raw, block, sizeof block, 0), 0) << "the one that waited is served";
    ::close(raw);
    set_log_sink({});
}

}  // namespace
}  // namespace ossa::net::test
