// The server's behaviour towards peers that mean well. hostile_test.cpp has the others.
#include "net/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <mutex>
#include <thread>

#include "base/bug.hpp"
#include "net/metrics.hpp"
#include "support.hpp"

namespace ossa::net::test {
namespace {

using testing::HasSubstr;

class HttpServerTest : public testing::TestWithParam<Client::Mode> {
  protected:
    void start(const std::function<void(ServerOptions&)>& change = {}) {
        ServerOptions options = test_options(GetParam());
        options.metrics = &metrics_;
        if (change) {
            change(options);
        }
        server_.emplace(std::move(options));
        const auto started = server_->start();
        ASSERT_TRUE(started) << started.error().message();
    }
    Client client() { return Client{server_->port(), GetParam()}; }

    Metrics metrics_;
    std::optional<HttpServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Doors, HttpServerTest, testing::Values(Client::Mode::plain, Client::Mode::tls),
                         [](const auto& door) { return door.param == Client::Mode::tls ? "tls" : "plain"; });

TEST_P(HttpServerTest, AnswersManyRequestsOnOneConnection) {
    start();
    Client it = client();
    for (int i = 0; i < 200; ++i) {
        const std::string body = "{\"n\":" + std::to_string(i) + "}";
        const auto answer = it.ask(post("/echo?timeout=5s", body));
        ASSERT_TRUE(answer) << i;
        EXPECT_EQ(answer->status, 200U);
        EXPECT_EQ(answer->body, body);
        EXPECT_EQ(answer->field("Content-Type"), "application/json");
        EXPECT_TRUE(answer->field("Date"));
        EXPECT_FALSE(answer->field("Connection"));
    }
    // An answer is counted behind its last byte, so its reader may be a moment early.
    for (const char* line :
         {"ossa_http_requests_total{listener=\"http\",code=\"200\"} 200\n",
          "ossa_http_connections_open{listener=\"http\"} 1\n", "ossa_http_requests_in_flight{listener=\"http\"} 0\n"}) {
        EXPECT_TRUE(eventually([&] { return metrics_.text().find(line) != std::string::npos; }))
            << line << metrics_.text();
    }
}

TEST_P(HttpServerTest, TakesBodiesOfEverySizeAndGivesTheirMemoryBack) {
    start();
    Client it = client();
    for (const std::size_t size : {0U, 1U, 15'000U, 16'384U, 20'000U, 61'000U, 81'000U, 300'000U, 7U << 20U, 10U}) {
        std::string body(size, 'x');
        for (std::size_t i = 0; i < size; i += 97) {
            body[i] = static_cast<char>('a' + i % 26);
        }
        const auto answer = it.ask(post("/echo", body));
        ASSERT_TRUE(answer) << size;
        EXPECT_EQ(answer->status, 200U);
        EXPECT_TRUE(answer->body == body) << size;
        EXPECT_TRUE(eventually([&] { return server_->inflight_bytes() == 0; })) << size;
    }
}

TEST_P(HttpServerTest, LetsThePaddingBehindABodyBeRead) {
    start([](ServerOptions& options) {
        options.routes.front().handler = [](Exchange& exchange) {
            const std::string_view body = exchange.request().body;
            unsigned sum = 0;
            for (std::size_t i = 0; i < Request::body_padding; ++i) {
                sum += static_cast<unsigned char>(body.data()[body.size() + i]);  // asan looks
            }
            exchange.response().body = sum == 4'000'000'000U ? "no" : "yes";
        };
    });
    Client it = client();
    for (std::size_t size = 16'000; size < 16'500; size += 7) {
        ASSERT_EQ(it.ask(post("/echo", std::string(size, 'x')))->body, "yes");
    }
    for (std::size_t size = 81'500; size < 82'000; size += 13) {
        ASSERT_EQ(it.ask(post("/echo", std::string(size, 'x')))->body, "yes");
    }
}

TEST_P(HttpServerTest, TakesChunkedBodies) {
    start();
    Client it = client();
    std::string text =
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    std::string body;
    for (int i = 1; i < 400; ++i) {
        char size[20];
        std::snprintf(size, sizeof size, "%x;n=%d\r\n", i, i);
        const std::string chunk(static_cast<std::size_t>(i), static_cast<char>('a' + i % 26));
        text += size + chunk + "\r\n";
        body += chunk;
    }
    text += "0\r\nTrailer: x\r\n\r\n";
    for (const std::size_t step : {text.size(), std::size_t{1000}, std::size_t{37}}) {
        for (std::size_t at = 0; at < text.size(); at += step) {
            ASSERT_TRUE(it.send(std::string_view{text}.substr(at, step)));
        }
        const auto answer = it.receive();
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 200U);
        EXPECT_TRUE(answer->body == body);
    }
}

TEST_P(HttpServerTest, AnswersPipelinedRequestsInOrder) {
    start();
    Client it = client();
    std::string all;
    for (int i = 0; i < 300; ++i) {
        all += post("/echo", std::string(static_cast<std::size_t>(i * 7 % 500), 'p') + std::to_string(i));
        if (i % 50 == 7) {
            all += post("/echo", std::string(100'000, 'q'));
        }
    }
    // In small steps, so that neither side's socket buffer fills while nobody reads.
    std::size_t sent = 0;
    for (int i = 0, answers = 0; answers < 306; ++answers) {
        while (sent < all.size() && sent < static_cast<std::size_t>(answers + 1) * 6'000 + 200'000) {
            const std::size_t step = std::min<std::size_t>(1'777, all.size() - sent);
            ASSERT_TRUE(it.send(std::string_view{all}.substr(sent, step)));
            sent += step;
        }
        const auto answer = it.receive();
        ASSERT_TRUE(answer) << answers;
        ASSERT_EQ(answer->status, 200U);
        if (answer->body.size() == 100'000) {
            continue;
        }
        EXPECT_TRUE(answer->body.ends_with(std::to_string(i))) << answers;
        ++i;
    }
}

TEST_P(HttpServerTest, WritesAnswersLargerThanTheSocketTakes) {
    start();
    Client it = client();
    for (const std::size_t size : {16'000U, 16'384U, 40'000U, 20U << 20U, 100U}) {
        const auto answer = it.ask(post("/big", std::to_string(size)));
        ASSERT_TRUE(answer) << size;
        EXPECT_EQ(answer->body.size(), size);
        EXPECT_EQ(answer->body.find_first_not_of('b'), std::string::npos);
    }
}

TEST_P(HttpServerTest, RefusesByTheHead) {
    start();
    Client it = client();
    const auto unknown = it.ask(get("/nothing"));
    ASSERT_TRUE(unknown);
    EXPECT_EQ(unknown->status, 404U);
    const auto wrong_method = it.ask(get("/echo"));
    ASSERT_TRUE(wrong_method);
    EXPECT_EQ(wrong_method->status, 405U);
    EXPECT_EQ(wrong_method->field("Allow"), "POST");
    const auto wrong_type =
        it.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/jsonx\r\nContent-Length: 2\r\n\r\n{}");
    ASSERT_TRUE(wrong_type);
    EXPECT_EQ(wrong_type->status, 415U);
    const auto no_type = it.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    ASSERT_TRUE(no_type);
    EXPECT_EQ(no_type->status, 415U);
    const auto with_charset = it.ask(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: Application/JSON; charset=utf-8\r\nContent-Length: "
        "2\r\n\r\n{}");
    ASSERT_TRUE(with_charset) << "the connection lived through all of it";
    EXPECT_EQ(with_charset->status, 200U);
}

TEST_P(HttpServerTest, EndsTheConnectionWhenARefusedBodyWasNotRead) {
    start();
    Client it = client();
    const auto answer = it.ask("POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 404U);
    EXPECT_EQ(answer->field("Connection"), "close");
    EXPECT_TRUE(it.wait_closed());
}

TEST_P(HttpServerTest, LimitsBodyAndHead) {
    start([](ServerOptions& options) { options.limits.body_bytes_max = 1000; });
    {
        Client it = client();
        EXPECT_EQ(it.ask(post("/echo", std::string(1000, 'x')))->status, 200U);
        const auto answer = it.ask(post("/echo", std::string(1001, 'x')));
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 413U);
        EXPECT_EQ(answer->field("Connection"), "close");
        EXPECT_TRUE(it.wait_closed());
    }
    Client it = client();
    const auto answer = it.ask(post("/echo", "{}", "X: " + std::string(17'000, 'x') + "\r\n"));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 431U);
    EXPECT_TRUE(it.wait_closed());
}

TEST_P(HttpServerTest, LimitsWhatAllBodiesHold) {
    start([](ServerOptions& options) { options.limits.inflight_bytes_max = 1 << 20; });
    Client first = client();
    const std::string body(900'000, 'x');
    const std::string request = post("/echo", body);
    ASSERT_TRUE(first.send(std::string_view{request}.substr(0, request.size() - 1)));
    ASSERT_TRUE(eventually([&] { return server_->inflight_bytes() > 800'000; }));
    Client second = client();
    const auto refused = second.ask(request);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 503U);
    EXPECT_EQ(refused->field("Retry-After"), "1");
    Client small = client();
    EXPECT_EQ(small.ask(post("/echo", "{}"))->status, 200U) << "small requests need no share of the budget";
    ASSERT_TRUE(first.send("x"));
    EXPECT_EQ(first.receive()->status, 200U);
    EXPECT_TRUE(eventually([&] { return server_->inflight_bytes() == 0; }));
}

TEST_P(HttpServerTest, ReservesNothingForAnnouncedBytes) {
    start();
    std::vector<Client> crowd;
    for (int i = 0; i < 40; ++i) {
        crowd.push_back(client());
        ASSERT_TRUE(
            crowd.back().send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                              "Content-Length: 7340032\r\n\r\nx"));
    }
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(server_->inflight_bytes(), 0U);
    EXPECT_EQ(client().ask(post("/echo", std::string(1 << 20, 'x')))->status, 200U);
}

TEST_P(HttpServerTest, SaysContinueWhenAsked) {
    start();
    Client it = client();
    const std::string request = post("/echo", "{}", "Expect: 100-continue\r\n");
    ASSERT_TRUE(it.send(std::string_view{request}.substr(0, request.size() - 2)));
    const auto goon = it.receive();
    ASSERT_TRUE(goon);
    EXPECT_EQ(goon->status, 100U);
    ASSERT_TRUE(it.send("{}"));
    EXPECT_EQ(it.receive()->body, "{}");
    // With the body already there, or when it is refused, nobody has to be told to go on.
    EXPECT_EQ(it.ask(request)->status, 200U);
    const auto refused =
        it.ask("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9999999\r\n\r\n");
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 413U);
}

TEST_P(HttpServerTest, ClosesWhenAskedTo) {
    start();
    for (const char* request :
         {"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET /hello HTTP/1.0\r\n\r\n",
          "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"}) {
        Client it = client();
        const auto answer = it.ask(request);
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->status, 200U);
        EXPECT_EQ(answer->field("Connection"), "close");
        EXPECT_TRUE(it.wait_closed());
    }
    EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
}

TEST_P(HttpServerTest, AnswersWhenAHandlerThrows) {
    start();
    Client it = client();
    const auto before = bug_count();
    const auto answer = it.ask(post("/throw", "{}"));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 500U);
    EXPECT_EQ(bug_count(), before + 1);
    EXPECT_EQ(it.ask(get("/hello"))->status, 200U);
}

TEST_P(HttpServerTest, DealsConnectionsRoundRobin) {
    std::array<std::atomic<int>, 3> by_worker{};
    start([&](ServerOptions& options) {
        options.workers = 3;
        options.routes.front().handler = [&](Exchange& exchange) { by_worker[exchange.request().worker]++; };
    });
    std::vector<Client> clients;
    for (int i = 0; i < 9; ++i) {
        clients.push_back(client());
        EXPECT_EQ(clients.back().ask(post("/echo", "{}"))->status, 200U);
    }
    for (const auto& count : by_worker) {
        EXPECT_EQ(count, 3);
    }
}

TEST_P(HttpServerTest, RefusesConnectionsOverTheLimit) {
    start([](ServerOptions& options) { options.limits.connections_max = 2; });
    Client first = client();
    Client second = client();
    ASSERT_TRUE(first.ask(get("/hello")));
    ASSERT_TRUE(second.ask(get("/hello")));
    {
        Client third = client();
        EXPECT_FALSE(third.ask(get("/hello")));
    }
    EXPECT_THAT(metrics_.text(), HasSubstr("ossa_http_connections_refused_total{listener=\"http\"} 1\n"));
    first.close();
    EXPECT_TRUE(eventually([&] { return server_->connections() == 1; }));
    EXPECT_TRUE(client().ask(get("/hello")));
}

// ------------------------------------------------------------------------------------------------------- answering
// later

struct Parking {
    std::mutex mutex;
    std::deque<Responder> waiting;
    std::size_t count() {
        const std::lock_guard lock{mutex};
        return waiting.size();
    }
    Responder take() {
        const std::lock_guard lock{mutex};
        Responder out = std::move(waiting.front());
        waiting.pop_front();
        return out;
    }
    Handler handler() {
        return [this](Exchange& exchange) {
            exchange.response().body = "later: ";
            const std::lock_guard lock{mutex};
            waiting.push_back(exchange.defer());
        };
    }
};

TEST_P(HttpServerTest, AnswersLaterFromAnotherThread) {
    Parking parking;
    start([&](ServerOptions& options) { options.routes.front().handler = parking.handler(); });
    Client it = client();
    for (const std::size_t size : {10U, 100'000U}) {
        const std::string body(size, 'x');
        // The second request is in the buffer behind the first.
        ASSERT_TRUE(it.send(post("/echo", body) + get("/hello")));
        ASSERT_TRUE(eventually([&] { return parking.count() == 1; }));
        Responder responder = parking.take();
        EXPECT_TRUE(responder.request().body == body);
        responder.response().body += std::to_string(responder.request().body.size());
        std::move(responder).send();
        const auto answer = it.receive();
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->body, "later: " + std::to_string(size));
        EXPECT_EQ(it.receive()->body, "hello");
    }
    EXPECT_EQ(server_->inflight_bytes(), 0U);
}

TEST_P(HttpServerTest, AnswersLaterOnTheWorkersOwnContext) {
    start([](ServerOptions& options) {
        options.routes.front().handler = [](Exchange& exchange) {
            auto timer = std::make_shared<boost::asio::steady_timer>(exchange.context(), 5ms);
            auto responder = std::make_shared<Responder>(exchange.defer());
            timer->async_wait([timer, responder](const boost::system::error_code&) {
                responder->response().body = "timed";
                std::move(*responder).send();
            });
        };
    });
    Client it = client();
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(it.ask(post("/echo", "{}"))->body, "timed");
    }
}

TEST_P(HttpServerTest, AnswersForAHandlerThatForgetsTo) {
    start([](ServerOptions& options) {
        options.routes.front().handler = [](Exchange& exchange) { (void)exchange.defer(); };
    });
    Client it = client();
    const auto before = bug_count();
    EXPECT_EQ(it.ask(post("/echo", "{}"))->status, 500U);
    EXPECT_EQ(bug_count(), before + 1);
    EXPECT_EQ(it.ask(get("/hello"))->status, 200U);
}

TEST_P(HttpServerTest, AnswersItselfWhenALateHandlerMissesTheDeadline) {
    Parking parking;
    start([&](ServerOptions& options) {
        options.routes.front().handler = parking.handler();
        options.limits.answer_deadline = 50ms;
    });
    Client it = client();
    const auto answer = it.ask(post("/echo", "{}"));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 504U);
    EXPECT_TRUE(it.wait_closed());
    Responder late = parking.take();
    EXPECT_EQ(late.request().body, "{}") << "the request's memory is the responder's";
    std::move(late).send();
    EXPECT_EQ(client().ask(get("/hello"))->status, 200U);
}

TEST_P(HttpServerTest, OutlivesItsLateHandlersAndTheyOutliveIt) {
    Parking parking;
    start([&](ServerOptions& options) { options.routes.front().handler = parking.handler(); });
    {
        Client gone = client();
        ASSERT_TRUE(gone.send(post("/echo", "{}")));
        ASSERT_TRUE(eventually([&] { return parking.count() == 1; }));
        gone.reset();
    }
    std::move(parking.waiting.front()).send();
    parking.waiting.clear();
    Client cut = client();
    ASSERT_TRUE(cut.send(post("/echo", std::string(100'000, 'x'))));
    ASSERT_TRUE(eventually([&] { return parking.count() == 1; }));
    server_->stop();
    EXPECT_FALSE(cut.receive());
    server_.reset();
    EXPECT_EQ(parking.waiting.front().request().body.size(), 100'000U);
    std::move(parking.waiting.front()).send();
}

// ------------------------------------------------------------------------------------------------------------- the end

TEST_P(HttpServerTest, R019_DrainsWithoutLosingACall) {
    Parking parking;
    start([&](ServerOptions& options) {
        options.workers = 2;
        options.routes.push_back({Method::post, "/later", "application/json", parking.handler()});
    });
    Client idle = client();
    ASSERT_TRUE(idle.ask(get("/hello")));
    Client in_flight = client();
    ASSERT_TRUE(in_flight.send(post("/later", "{}")));
    ASSERT_TRUE(eventually([&] { return parking.count() == 1; }));
    Client half_sent = client();
    const std::string slow = post("/echo", "{\"slow\":1}");
    ASSERT_TRUE(half_sent.send(std::string_view{slow}.substr(0, slow.size() - 3)));

    std::thread draining{[&] { server_->drain(2s); }};
    // Callers go on as before for the grace time: on old connections while they last, on new ones after that.
    const auto until = std::chrono::steady_clock::now() + 400ms;
    int calls = 0;
    std::optional<Client> caller{client()};
    int closed = 0;
    while (std::chrono::steady_clock::now() < until) {
        const auto answer = caller->ask(post("/echo", "{}"));
        ASSERT_TRUE(answer) << calls;
        EXPECT_EQ(answer->status, 200U);
        ++calls;
        if (answer->field("Connection") == "close") {
            ++closed;
            caller.emplace(server_->port(), GetParam());
            ASSERT_TRUE(caller->connected());
        }
    }
    EXPECT_GE(closed, 1);

    EXPECT_TRUE(idle.wait_closed());  // at the end of the grace time
    Responder late = parking.take();  // and what was in flight is still answered
    late.response().body += "done";
    std::move(late).send();
    const auto answer = in_flight.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "later: done");
    EXPECT_EQ(answer->field("Connection"), "close");
    ASSERT_TRUE(half_sent.send(std::string_view{slow}.substr(slow.size() - 3)));
    const auto slow_answer = half_sent.receive();
    ASSERT_TRUE(slow_answer);
    EXPECT_EQ(slow_answer->status, 200U);
    in_flight.close();
    half_sent.close();
    caller.reset();
    draining.join();
    EXPECT_EQ(server_->connections(), 0U);
    EXPECT_FALSE(client().connected());
}

TEST_P(HttpServerTest, ASecondSignalEndsTheDrainAtOnce) {
    Parking parking;
    start([&](ServerOptions& options) { options.routes.front().handler = parking.handler(); });
    Client in_flight = client();
    ASSERT_TRUE(in_flight.send(post("/echo", "{}")));
    ASSERT_TRUE(eventually([&] { return parking.count() == 1; }));
    std::atomic<bool> second{false};
    const auto began = std::chrono::steady_clock::now();
    std::thread signal{[&] {
        std::this_thread::sleep_for(50ms);
        second = true;
    }};
    server_->drain(30s, [&] { return second.load(); });
    EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
    signal.join();
    EXPECT_FALSE(in_flight.receive());
}

TEST_P(HttpServerTest, DrainEndsEvenWhenAPeerDoesNot) {
    Parking parking;
    start([&](ServerOptions& options) {
        options.routes.front().handler = parking.handler();
        options.limits.drain_max = 100ms;
    });
    Client stuck = client();
    ASSERT_TRUE(stuck.send(post("/echo", "{}")));
    ASSERT_TRUE(eventually([&] { return parking.count() == 1; }));
    const auto began = std::chrono::steady_clock::now();
    server_->drain(10ms);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST(HttpServer, SaysWhyItCannotListen) {
    for (const char* address : {"", "8443", "host:", "127.0.0.1:99999", "127.0.0.1:x", "::1:80", "256.0.0.1:0"}) {
        HttpServer server{ServerOptions{.address = address}};
        const auto started = server.start();
        ASSERT_FALSE(started) << address;
        EXPECT_THAT(started.error().message(), HasSubstr(address));
    }
    HttpServer first{ServerOptions{}};
    ASSERT_TRUE(first.start());
    HttpServer second{ServerOptions{.address = "127.0.0.1:" + std::to_string(first.port())}};
    const auto started = second.start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(started.error().message(), HasSubstr("in use"));
    HttpServer everywhere{ServerOptions{.address = ":0", .routes = test_routes()}};
    ASSERT_TRUE(everywhere.start());
    EXPECT_EQ((Client{everywhere.port(), Client::Mode::plain}.ask(get("/hello"))->status), 200U);
}

}  // namespace
}  // namespace ossa::net::test
