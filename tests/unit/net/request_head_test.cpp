#include "net/request_head.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace ossa::net {
namespace {

constexpr std::size_t head_max = 16384;

// Fed in pieces of `step` bytes, from memory that moves, as a growing buffer does.
struct Parsed {
    RequestHead head{head_max};
    RequestHead::Step step = RequestHead::Step::more;
};
std::unique_ptr<Parsed> parse(const std::string& text, std::size_t step = 1 << 20) {
    auto out = std::make_unique<Parsed>();
    for (std::size_t end = 0; end < text.size() && out->step == RequestHead::Step::more;) {
        end = std::min(text.size(), end + step);
        const std::string moved = text.substr(0, end);
        out->step = out->head.feed(moved);
    }
    return out;
}

constexpr const char* usual =
    "POST /validate?timeout=5s HTTP/1.1\r\nHost: webhook:443\r\nUser-Agent: kube-apiserver-admission\r\n"
    "Content-Length: 17\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: "
    "gzip\r\n\r\n";

TEST(RequestHead, TakesTheUsualRequestInAnyPieces) {
    for (const std::size_t step : {1U, 2U, 3U, 7U, 64U, 4096U}) {
        const auto parsed = parse(usual, step);
        ASSERT_EQ(parsed->step, RequestHead::Step::complete) << step << " " << parsed->head.reason();
        EXPECT_EQ(parsed->head.method(), Method::post);
        EXPECT_EQ(parsed->head.target(usual), "/validate?timeout=5s");
        EXPECT_EQ(parsed->head.content_type(usual), "application/json");
        EXPECT_EQ(parsed->head.body_kind(), BodyKind::length);
        EXPECT_EQ(parsed->head.content_length(), 17U);
        EXPECT_EQ(parsed->head.size(), std::string_view{usual}.size());
        EXPECT_TRUE(parsed->head.keep_alive());
        EXPECT_FALSE(parsed->head.expects_continue());
    }
}

TEST(RequestHead, EndsWhereTheBodyBegins) {
    const std::string text = std::string{usual} + "GET / HTTP/1.1\r\n";
    const auto parsed = parse(text);
    ASSERT_EQ(parsed->step, RequestHead::Step::complete);
    EXPECT_EQ(parsed->head.size(), std::string_view{usual}.size());
}

struct Refusal {
    const char* name;
    const char* text;
    unsigned status;
};

TEST(RequestHead, RefusesWhatAnotherServerCouldReadOtherwise) {
    const Refusal refusals[] = {
        {"both lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"both lengths, other order",
         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
        {"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
        {"two lengths in one", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\n", 400},
        {"length with sign", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400},
        {"length with letters", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", 400},
        {"length beyond 64 bits", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
        {"gzip coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
        {"gzip then chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400},
        {"chunked then identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 400},
        {"chunked twice",
         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"coding with a vertical tab",
         "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0b"
         "chunked\r\n\r\n",
         400},
        {"chunked in 1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"space before colon", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n", 400},
        {"folded field", "POST / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", 400},
        {"no host", "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400},
        {"two hosts", "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"two content types", "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Type: c/d\r\n\r\n", 400},
        {"bare line feeds", "POST / HTTP/1.1\nHost: a\n\n", 505},
        {"zero in a field", nullptr, 400},
        {"no version", "POST /\r\n\r\n", 400},
        {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"HTTP/0.9", "POST / HTTP/0.9\r\nHost: a\r\n\r\n", 505},
        {"unknown expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: the-unexpected\r\n\r\n", 417},
        {"TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},
    };
    for (const Refusal& refusal : refusals) {
        const std::string text = refusal.text != nullptr
                                     ? std::string{refusal.text}
                                     : std::string{"POST / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", 35};
        const auto whole = parse(text);
        EXPECT_EQ(whole->step, RequestHead::Step::refused) << refusal.name;
        EXPECT_EQ(whole->head.status(), refusal.status) << refusal.name << ": " << whole->head.reason();
        // In pieces, a head that never ends is waited for, until the limit or the deadline.
        const auto pieces = parse(text, 1);
        EXPECT_NE(pieces->step, RequestHead::Step::complete) << refusal.name;
    }
}

TEST(RequestHead, KeepsTheConnectionOnlyInHttp11) {
    EXPECT_TRUE(parse("GET / HTTP/1.1\r\nHost: a\r\n\r\n")->head.keep_alive());
    EXPECT_FALSE(parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")->head.keep_alive());
    EXPECT_FALSE(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")->head.keep_alive());
}

TEST(RequestHead, HasALimit) {
    const std::string start = "GET / HTTP/1.1\r\nHost: a\r\n";
    const auto of_size = [&](std::size_t size) {
        return start + "X: " + std::string(size - start.size() - 7, 'x') + "\r\n\r\n";
    };
    EXPECT_EQ(parse(of_size(head_max))->step, RequestHead::Step::complete);
    for (const std::size_t step : {std::size_t{1000}, std::size_t{1} << 20}) {
        const auto parsed = parse(of_size(head_max + 1), step);
        EXPECT_EQ(parsed->step, RequestHead::Step::refused);
        EXPECT_EQ(parsed->head.status(), 431U);
        const auto endless = parse("GET /" + std::string(head_max * 2, 'a'), step);
        EXPECT_EQ(endless->step, RequestHead::Step::refused);
        EXPECT_EQ(endless->head.status(), 431U);
    }
}

// Whatever comes in, and in whatever pieces: taken or not alike, and no step outside the bytes (asan).
TEST(RequestHead, GivesOneVerdictForAnyPieces) {
    const std::vector<std::string> seeds = {
        usual, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        "GET /a?b=c HTTP/1.0\r\nConnection: keep-alive, x\r\nContent-Length: 1,1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\t2\r\n\r\n"};
    constexpr unsigned seed = 20240601;
    std::minstd_rand random{seed};
    constexpr std::string_view alphabet{"\r\n :,;\0\x80/A1Hh?", 14};
    for (int round = 0; round < 20000; ++round) {
        std::string text = seeds[random() % seeds.size()];
        for (auto i = random() % 4; i != 0; --i) {
            const std::size_t at = random() % text.size();
            switch (random() % 3) {
                case 0: text[at] = alphabet[random() % alphabet.size()]; break;
                case 1: text.erase(at, 1 + random() % 5); break;
                default: text.insert(at, 1, alphabet[random() % alphabet.size()]); break;
            }
            if (text.empty()) {
                text = "G";
            }
        }
        const auto whole = parse(text);
        const auto pieces = parse(text, 1 + random() % 9);
        ASSERT_EQ(whole->step == RequestHead::Step::complete, pieces->step == RequestHead::Step::complete)
            << "seed " << seed << " round " << round << ": " << text;
        if (whole->step == RequestHead::Step::complete) {
            EXPECT_EQ(whole->head.size(), pieces->head.size());
            EXPECT_EQ(whole->head.target(text), pieces->head.target(text));
            EXPECT_EQ(whole->head.body_kind(), pieces->head.body_kind());
            EXPECT_EQ(whole->head.content_length(), pieces->head.content_length());
        }
    }
}

// ------------------------------------------------------------------------------------------------------- chunked
// bodies

struct Decoded {
    ChunkedBody::Step step = ChunkedBody::Step::more;
    std::string body;
    std::size_t consumed = 0;
};

Decoded decode(const std::string& text, std::size_t step, std::size_t body_max = 1000) {
    // As a session does it: the buffer is compacted behind every feed.
    std::string data;
    ChunkedBody machine{body_max};
    Decoded out;
    std::size_t decoded = 0;
    std::size_t raw = 0;
    for (std::size_t fed = 0; fed < text.size();) {
        const std::size_t take = std::min(step, text.size() - fed);
        data.append(text, fed, take);
        fed += take;
        const std::size_t before = raw;
        out.step = machine.feed(data.data(), decoded, raw, data.size());
        out.consumed += raw - before;
        if (out.step != ChunkedBody::Step::more) {
            break;
        }
        data.resize(decoded);
        raw = decoded;
    }
    out.body = data.substr(0, decoded);
    return out;
}

TEST(ChunkedBody, IsTheSameInAnyPieces) {
    const std::string text = "5\r\nhello\r\nA;name=\"value\"\r\n, world. 1\r\n00\r\nTrailer: x\r\nOther: y\r\n\r\n";
    for (std::size_t step = 1; step <= text.size(); ++step) {
        const Decoded decoded = decode(text + "GET /next", step);
        ASSERT_EQ(decoded.step, ChunkedBody::Step::complete) << step;
        EXPECT_EQ(decoded.body, "hello, world. 1");
        EXPECT_EQ(decoded.consumed, text.size());
    }
}

TEST(ChunkedBody, RefusesWhatIsNotExact) {
    for (const char* text : {"\r\n", " 5\r\nhello\r\n", "5 \r\nhello\r\n", "+5\r\nhello\r\n", "-1\r\n",
                             "0x5\r\nhello\r\n", "5\nhello\r\n", "5\r\nhello\n", "5\r\nhello5\r\n", "5\r\nhelloX\r\n",
                             "5;\nhello\r\n", "g\r\n", "5\r\rhello", "0\r\n\n", "0\r\nX: y\n\r\n", ";5\r\n"}) {
        for (const std::size_t step : {1U, 100U}) {
            EXPECT_EQ(decode(text, step).step, ChunkedBody::Step::malformed) << text;
        }
    }
    EXPECT_EQ(decode("5;" + std::string(5000, 'x'), 100).step, ChunkedBody::Step::malformed);
    EXPECT_EQ(decode("0\r\n" + std::string(9000, 'x'), 100).step, ChunkedBody::Step::malformed);
    EXPECT_EQ(decode(std::string(5000, '0') + "\r\n", 100).step, ChunkedBody::Step::malformed);
}

TEST(ChunkedBody, HasALimit) {
    EXPECT_EQ(decode("5\r\nhello\r\n0\r\n\r\n", 100, 5).step, ChunkedBody::Step::complete);
    EXPECT_EQ(decode("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", 100, 5).step, ChunkedBody::Step::too_large);
    EXPECT_EQ(decode("6\r\n", 100, 5).step, ChunkedBody::Step::too_large);  // before its data is there
    EXPECT_EQ(decode("ffffffffffffffff\r\n", 100, 5).step, ChunkedBody::Step::too_large);
    EXPECT_EQ(decode("fffffffffffffffffffffffffffffff\r\n", 100, 5).step, ChunkedBody::Step::too_large);
}

TEST(Request, FindsParameters) {
    Request request;
    request.query = "a&timeout=5s&b=&timeout=6s&=x";
    EXPECT_EQ(request.parameter("timeout"), "5s");
    EXPECT_EQ(request.parameter("a"), "");
    EXPECT_EQ(request.parameter("b"), "");
    EXPECT_EQ(request.parameter("c"), std::nullopt);
    request.query = "";
    EXPECT_EQ(request.parameter("a"), std::nullopt);
}

}  // namespace
}  // namespace ossa::net
