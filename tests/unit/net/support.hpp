// For the tests of net/ and certs/: certificates made on the spot, a blocking client that can misbehave, a server in a
// line.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/server.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace ossa::net::test {

using namespace std::chrono_literals;

struct CertificateOptions {
    std::string common_name = "server";
    std::vector<std::string> dns_names;
    std::chrono::seconds begins_in{-3600};
    std::chrono::seconds ends_in{3600};
    bool authority = false;
};

struct Certificate {
    std::string certificate_pem;
    std::string key_pem;
};

// Self-signed, or signed by `issuer`. Keys are P-256.
Certificate make_certificate(const CertificateOptions& options = {}, const Certificate* issuer = nullptr);
std::string encrypted_key_pem(const std::string& key_pem, const std::string& password);
std::shared_ptr<IdentityCell> test_identity(const TlsSource* source = nullptr);

struct Answer {
    unsigned status = 0;
    std::string head;
    std::string body;
    std::optional<std::string> field(std::string_view name) const;
};

// One connection. Every call ends within `patience`; a failure is an empty result, never a hang.
class Client {
  public:
    enum class Mode { plain, tls };
    Client(std::uint16_t port, Mode mode, std::chrono::milliseconds patience = 10s,
           const Certificate* identity = nullptr);
    ~Client();
    Client(Client&&) noexcept;
    Client& operator=(Client&&) = delete;

    bool connected() const { return connected_; }  // and shaken hands
    bool send(std::string_view bytes);
    bool send_raw(std::string_view bytes);  // past TLS
    std::optional<Answer> receive();
    // Waits for the server's end of the connection, dropping what comes; false: it did not end within the patience.
    bool wait_closed();
    std::optional<Answer> ask(std::string_view request) { return send(request) ? receive() : std::nullopt; }
    void reset();  // closes with RST
    void close();
    void small_receive_window();
    int fd() const { return fd_; }
    ssl_st* ssl() const { return ssl_; }

  private:
    std::optional<std::string> read_some();
    int fd_ = -1;
    ssl_ctx_st* context_ = nullptr;
    ssl_st* ssl_ = nullptr;
    bool connected_ = false;
    std::string input_;
};

std::string post(std::string_view path, std::string_view body, std::string_view extra_fields = {});
std::string get(std::string_view path);

// "/echo" answers the body, "/hello" (GET) answers "hello", "/big" answers as many bytes as the body says, "/throw"
// throws.
std::vector<Route> test_routes();
ServerOptions test_options(Client::Mode mode);

std::size_t open_descriptors();
std::size_t resident_kib();

// Waits until it is so, at most ten seconds.
bool eventually(const std::function<bool()>& so);

}  // namespace ossa::net::test
