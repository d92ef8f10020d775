#include "net/tls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "certs/files.hpp"
#include "net/log.hpp"
#include "net/metrics.hpp"
#include "support.hpp"

namespace ossa::net::test {
namespace {

using testing::HasSubstr;

TlsSource source_of(const Certificate& it) {
    return {it.certificate_pem, it.key_pem, {}, {}};
}

std::string why_not(const TlsSource& source) {
    const auto made = TlsIdentity::make(source);
    return made ? "" : made.error().message();
}

TEST(TlsIdentity, TellsWhoItIs) {
    const auto made = TlsIdentity::make(source_of(make_certificate({.common_name = "ossa-webhook", .ends_in = 7200s})));
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_EQ((*made)->subject(), "CN=ossa-webhook");
    EXPECT_EQ((*made)->fingerprint().size(), 64U);
    const auto in = (*made)->not_after() - std::chrono::system_clock::now();
    EXPECT_GT(in, 7100s);
    EXPECT_LT(in, 7300s);
}

TEST(TlsIdentity, EndsWithTheFirstOfItsChain) {
    const Certificate authority = make_certificate({.common_name = "ca", .ends_in = 600s, .authority = true});
    const Certificate leaf = make_certificate({.common_name = "leaf", .ends_in = 7200s}, &authority);
    const auto made = TlsIdentity::make({leaf.certificate_pem + authority.certificate_pem, leaf.key_pem, {}, {}});
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_LT((*made)->not_after() - std::chrono::system_clock::now(), 700s);
}

TEST(TlsIdentity, SaysWhatIsWrong) {
    const Certificate good = make_certificate();
    const Certificate other = make_certificate();
    EXPECT_THAT(why_not({"", good.key_pem, {}, {}}), HasSubstr("certificate: no PEM certificate"));
    EXPECT_THAT(why_not({"junk", good.key_pem, {}, {}}), HasSubstr("certificate: no PEM certificate"));
    EXPECT_THAT(why_not({good.certificate_pem, "", {}, {}}), HasSubstr("private key: no PEM private key"));
    EXPECT_THAT(why_not({good.certificate_pem, good.certificate_pem, {}, {}}), HasSubstr("private key"));
    EXPECT_THAT(why_not({good.certificate_pem, other.key_pem, {}, {}}), HasSubstr("does not belong to certificate"));
    EXPECT_THAT(why_not({good.certificate_pem, encrypted_key_pem(good.key_pem, "secret"), {}, {}}),
                HasSubstr("encrypted"));
    std::string cut = good.certificate_pem;
    cut.resize(cut.size() / 2);
    EXPECT_THAT(why_not({cut, good.key_pem, {}, {}}), HasSubstr("certificate: "));
    EXPECT_THAT(why_not(source_of(make_certificate({.begins_in = -7200s, .ends_in = -3600s}))),
                HasSubstr("expired at 20"));
    EXPECT_THAT(why_not(source_of(make_certificate({.begins_in = 3600s, .ends_in = 7200s}))),
                HasSubstr("not valid before 20"));
    EXPECT_THAT(why_not({good.certificate_pem, good.key_pem, "junk", {}}), HasSubstr("client CA: no PEM certificate"));
}

struct Server {
    explicit Server(std::shared_ptr<IdentityCell> identity) : options(test_options(Client::Mode::plain)) {
        options.identity = std::move(identity);
        options.metrics = &metrics;
        server.emplace(std::move(options));
        EXPECT_TRUE(server->start());
    }
    Metrics metrics;
    ServerOptions options;
    std::optional<HttpServer> server;
};

bool served(Server& server, const Certificate* identity) {
    Client client{server.server->port(), Client::Mode::tls, 5s, identity};
    const auto answer = client.ask(get("/hello"));
    return answer && answer->status == 200;
}

TEST(Tls, LetsInTheClientsOfTheAuthorityThatAreNamed) {
    const Certificate ours = make_certificate();
    const Certificate authority = make_certificate({.common_name = "ca", .authority = true});
    const Certificate stranger_authority = make_certificate({.common_name = "ca", .authority = true});
    const Certificate by_common_name = make_certificate({.common_name = "apiserver"}, &authority);
    const Certificate by_dns_name = make_certificate({.common_name = "x", .dns_names = {"y", "apiserver"}}, &authority);
    const Certificate other_name = make_certificate({.common_name = "apiserver2", .dns_names = {"y"}}, &authority);
    const Certificate stranger = make_certificate({.common_name = "apiserver"}, &stranger_authority);
    const Certificate expired =
        make_certificate({.common_name = "apiserver", .begins_in = -7200s, .ends_in = -60s}, &authority);

    TlsSource source{ours.certificate_pem, ours.key_pem, authority.certificate_pem, {"apiserver"}};
    Server server{test_identity(&source)};
    EXPECT_TRUE(served(server, &by_common_name));
    EXPECT_TRUE(served(server, &by_dns_name));
    EXPECT_FALSE(served(server, &other_name));
    EXPECT_FALSE(served(server, &stranger));
    EXPECT_FALSE(served(server, &expired));
    EXPECT_FALSE(served(server, nullptr));
    EXPECT_THAT(server.metrics.text(), HasSubstr("ossa_http_handshakes_failed_total{listener=\"http\"} 4\n"));

    source.client_names.clear();
    Server any_name{test_identity(&source)};
    EXPECT_TRUE(served(any_name, &other_name));
    EXPECT_FALSE(served(any_name, &stranger));
}

TEST(Tls, SpeaksNoOldVersionAndNoWeakSuite) {
    Server server{test_identity()};
    const auto shakes_hands = [&](int version, const char* suites, const char* expected) {
        Client plain{server.server->port(), Client::Mode::plain, 5s};
        SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_security_level(context, 0);
        SSL_CTX_set_min_proto_version(context, version);
        SSL_CTX_set_max_proto_version(context, version);
        SSL_CTX_set_cipher_list(context, suites);
        SSL* const ssl = SSL_new(context);
        SSL_set_fd(ssl, plain.fd());
        const bool good = SSL_connect(ssl) == 1;
        if (good && expected != nullptr) {
            EXPECT_STREQ(SSL_get_cipher_name(ssl), expected);
        }
        SSL_free(ssl);
        SSL_CTX_free(context);
        return good;
    };
    EXPECT_TRUE(shakes_hands(TLS1_3_VERSION, "ALL", "TLS_AES_128_GCM_SHA256"));
    EXPECT_TRUE(shakes_hands(TLS1_2_VERSION, "ALL", nullptr));
    EXPECT_TRUE(shakes_hands(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", nullptr));
    EXPECT_FALSE(shakes_hands(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA256", nullptr));
    EXPECT_FALSE(shakes_hands(TLS1_2_VERSION, "AES128-GCM-SHA256", nullptr));
    EXPECT_FALSE(shakes_hands(TLS1_1_VERSION, "ALL", nullptr));
}

TEST(Tls, ResumesAndSpeaksHttp11Only) {
    Server server{test_identity()};
    SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    SSL_SESSION* session = nullptr;
    for (int round = 0; round < 2; ++round) {
        Client plain{server.server->port(), Client::Mode::plain, 5s};
        SSL* const ssl = SSL_new(context);
        static constexpr unsigned char offered[] = "\x02h2\x08http/1.1";
        SSL_set_alpn_protos(ssl, offered, sizeof offered - 1);
        SSL_set_fd(ssl, plain.fd());
        if (session != nullptr) {
            SSL_set_session(ssl, session);
        }
        ASSERT_EQ(SSL_connect(ssl), 1);
        const unsigned char* chosen = nullptr;
        unsigned length = 0;
        SSL_get0_alpn_selected(ssl, &chosen, &length);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), length), "http/1.1");
        const std::string request = get("/hello");
        SSL_write(ssl, request.data(), static_cast<int>(request.size()));
        char block[4096];
        EXPECT_GT(SSL_read(ssl, block, sizeof block), 0);  // the ticket comes before the answer
        EXPECT_EQ(SSL_session_reused(ssl), round);
        SSL_SESSION_free(session);
        session = SSL_get1_session(ssl);
        SSL_shutdown(ssl);  // else OpenSSL takes the session for a broken one
        SSL_free(ssl);
    }
    SSL_SESSION_free(session);
    SSL_CTX_free(context);
}

TEST(Tls, NewHandshakesTakeTheNewIdentityAndOldConnectionsLive) {
    const auto cell = test_identity();
    Server server{cell};
    Client old{server.server->port(), Client::Mode::tls};
    ASSERT_TRUE(old.ask(get("/hello")));
    const Certificate next = make_certificate({.common_name = "next"});
    cell->publish(*TlsIdentity::make(source_of(next)));
    Client fresh{server.server->port(), Client::Mode::tls};
    X509* const shown = SSL_get1_peer_certificate(fresh.ssl());
    ASSERT_NE(shown, nullptr);
    char name[64] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name, sizeof name);
    X509_free(shown);
    EXPECT_STREQ(name, "next");
    EXPECT_TRUE(old.ask(get("/hello")));
}

class CertificateFiles : public testing::Test {
  protected:
    void SetUp() override {
        directory_ = std::filesystem::temp_directory_path() / ("ossa-certs-" + std::to_string(::getpid()));
        std::filesystem::create_directories(directory_);
        set_log_sink([this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
    }
    void TearDown() override {
        set_log_sink({});
        std::filesystem::remove_all(directory_);
    }
    std::string write(const std::string& name, const std::string& text) {
        std::ofstream{directory_ / name} << text;
        return (directory_ / name).string();
    }
    certs::FilePaths paths_of(const Certificate& it) {
        return {write("tls.crt", it.certificate_pem), write("tls.key", it.key_pem), {}, {}};
    }
    std::filesystem::path directory_;
    std::vector<std::string> lines_;
};

TEST_F(CertificateFiles, ErrorsNameTheFile) {
    const auto missing = certs::load_identity({(directory_ / "none").string(), "x", {}, {}});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), ErrorCode::not_found);
    EXPECT_THAT(missing.error().message(), HasSubstr("none: No such file"));
    certs::FilePaths paths = paths_of(make_certificate());
    EXPECT_TRUE(certs::load_identity(paths));
    paths.client_ca = write("ca.crt", "");
    const auto empty_authority = certs::load_identity(paths);
    ASSERT_FALSE(empty_authority) << "an empty file must not let everyone in";
    EXPECT_THAT(empty_authority.error().message(), HasSubstr("ca.crt: empty"));
    EXPECT_FALSE(certs::load_identity({directory_.string(), directory_.string(), {}, {}}));
}

TEST_F(CertificateFiles, WatcherTakesAGoodPairAndKeepsTheOldOneForABadOne) {
    boost::asio::io_context context;
    Metrics metrics;
    const auto cell = std::make_shared<IdentityCell>();
    const Certificate first = make_certificate({.common_name = "first"});
    const Certificate second = make_certificate({.common_name = "second"});
    certs::FileWatcher watcher{context, paths_of(first), cell, metrics, 5ms};
    ASSERT_TRUE(watcher.start());
    EXPECT_EQ(cell->read()->subject(), "CN=first");

    write("tls.crt", second.certificate_pem);  // half of the new pair
    watcher.look();
    watcher.look();
    EXPECT_EQ(cell->read()->subject(), "CN=first");
    EXPECT_THAT(metrics.text(), HasSubstr("ossa_tls_reload_failures_total 1\n"));

    write("tls.key", second.key_pem);  // and the other; the timer finds it
    for (int i = 0; i < 200 && cell->read()->subject() == "CN=first"; ++i) {
        context.run_one();
    }
    EXPECT_EQ(cell->read()->subject(), "CN=second");
    EXPECT_THAT(metrics.text(), HasSubstr("ossa_tls_reloads_total 1\n"));

    std::filesystem::remove(directory_ / "tls.key");
    watcher.look();
    EXPECT_EQ(cell->read()->subject(), "CN=second");
    const Certificate expired = make_certificate({.common_name = "late", .begins_in = -100s, .ends_in = -1s});
    paths_of(expired);
    watcher.look();
    EXPECT_EQ(cell->read()->subject(), "CN=second");
    paths_of(second);
    watcher.look();
    EXPECT_THAT(metrics.text(), HasSubstr("ossa_tls_reload_failures_total 3\n"));
    EXPECT_THAT(metrics.text(), HasSubstr("ossa_tls_reloads_total 1\n"));
    watcher.stop();
    context.run();  // ends: nothing is left waiting
}

TEST_F(CertificateFiles, WatcherMayEndWhileItsThreadLooks) {
    const certs::FilePaths paths = paths_of(make_certificate());
    const certs::FilePaths broken{paths.certificate, write("other.key", make_certificate().key_pem), {}, {}};
    for (int i = 0; i < 50; ++i) {
        boost::asio::io_context context;
        Metrics metrics;
        const auto keep = boost::asio::make_work_guard(context);
        std::thread thread{[&] { context.run(); }};
        {
            certs::FileWatcher watcher{context, paths, std::make_shared<IdentityCell>(), metrics, 1ms};
            ASSERT_TRUE(watcher.start());
            certs::FileWatcher fails{context, broken, std::make_shared<IdentityCell>(), metrics, 1ms};
            EXPECT_FALSE(fails.start());
            std::this_thread::sleep_for(std::chrono::microseconds{i * 100});
        }
        context.stop();
        thread.join();
    }
}

}  // namespace
}  // namespace ossa::net::test
