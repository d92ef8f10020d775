#include "support.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace ossa::net::test {
namespace {

template <class F>
std::string to_pem(F&& write) {
    BIO* const bio = BIO_new(BIO_s_mem());
    write(bio);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string out(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return out;
}

EVP_PKEY* key_of(const std::string& pem) {
    BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    return key;
}

X509* certificate_of(const std::string& pem) {
    BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    return certificate;
}

void add_extension(X509* certificate, int nid, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

}  // namespace

Certificate make_certificate(const CertificateOptions& options, const Certificate* issuer) {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const certificate = X509_new();
    X509_set_version(certificate, 2);
    static long serial = 1;
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), options.begins_in.count());
    X509_gmtime_adj(X509_getm_notAfter(certificate), options.ends_in.count());
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(options.common_name.c_str()), -1, -1, 0);
    if (options.authority) {
        add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    }
    std::string names;
    for (const std::string& name : options.dns_names) {
        names += (names.empty() ? "DNS:" : ",DNS:") + name;
    }
    if (!names.empty()) {
        add_extension(certificate, NID_subject_alt_name, names);
    }
    EVP_PKEY* signer = key;
    if (issuer != nullptr) {
        X509* const parent = certificate_of(issuer->certificate_pem);
        X509_set_issuer_name(certificate, X509_get_subject_name(parent));
        X509_free(parent);
        signer = key_of(issuer->key_pem);
    } else {
        X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    }
    X509_sign(certificate, signer, EVP_sha256());
    Certificate out{to_pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); }), to_pem([&](BIO* bio) {
                        PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
                    })};
    if (issuer != nullptr) {
        EVP_PKEY_free(signer);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
    return out;
}

std::string encrypted_key_pem(const std::string& key_pem, const std::string& password) {
    EVP_PKEY* const key = key_of(key_pem);
    std::string out = to_pem([&](BIO* bio) {
        PEM_write_bio_PrivateKey(bio, key, EVP_aes_256_cbc(), reinterpret_cast<const unsigned char*>(password.data()),
                                 static_cast<int>(password.size()), nullptr, nullptr);
    });
    EVP_PKEY_free(key);
    return out;
}

std::shared_ptr<IdentityCell> test_identity(const TlsSource* source) {
    static const Certificate ours = make_certificate();
    TlsSource made;
    if (source != nullptr) {
        made = *source;
    } else {
        made.certificate_pem = ours.certificate_pem;
        made.key_pem = ours.key_pem;
    }
    auto identity = TlsIdentity::make(made);
    if (!identity) {
        throw std::runtime_error(identity.error().message());
    }
    return std::make_shared<IdentityCell>(std::move(*identity));
}

std::optional<std::string> Answer::field(std::string_view name) const {
    const std::string wanted = "\r\n" + std::string{name} + ": ";
    const std::size_t at = head.find(wanted);
    if (at == std::string::npos) {
        return std::nullopt;
    }
    const std::size_t begin = at + wanted.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
}

Client::Client(std::uint16_t port, Mode mode, std::chrono::milliseconds patience, const Certificate* identity) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    timeval time{};
    time.tv_sec = patience.count() / 1000;
    time.tv_usec = (patience.count() % 1000) * 1000;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    if (mode == Mode::tls && connected_) {
        context_ = SSL_CTX_new(TLS_client_method());
        if (identity != nullptr) {
            X509* const certificate = certificate_of(identity->certificate_pem);
            EVP_PKEY* const key = key_of(identity->key_pem);
            SSL_CTX_use_certificate(context_, certificate);
            SSL_CTX_use_PrivateKey(context_, key);
            X509_free(certificate);
            EVP_PKEY_free(key);
        }
        ssl_ = SSL_new(context_);
        SSL_set_fd(ssl_, fd_);
        connected_ = SSL_connect(ssl_) == 1;
        ERR_clear_error();
    }
}

Client::~Client() {
    close();
    SSL_free(ssl_);
    SSL_CTX_free(context_);
}

Client::Client(Client&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      context_(std::exchange(other.context_, nullptr)),
      ssl_(std::exchange(other.ssl_, nullptr)),
      connected_(other.connected_),
      input_(std::move(other.input_)) {}

bool Client::send(std::string_view bytes) {
    if (ssl_ == nullptr) {
        return send_raw(bytes);
    }
    while (!bytes.empty()) {
        std::size_t done = 0;
        if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &done) != 1) {
            ERR_clear_error();
            return false;
        }
        bytes.remove_prefix(done);
    }
    return true;
}

bool Client::send_raw(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t done = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (done <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(done));
    }
    return true;
}

std::optional<std::string> Client::read_some() {
    char block[16384];
    if (ssl_ != nullptr) {
        std::size_t got = 0;
        if (SSL_read_ex(ssl_, block, sizeof block, &got) != 1) {
            ERR_clear_error();
            return std::nullopt;
        }
        return std::string(block, got);
    }
    const ssize_t got = ::recv(fd_, block, sizeof block, 0);
    return got > 0 ? std::optional{std::string(block, static_cast<std::size_t>(got))} : std::nullopt;
}

std::optional<Answer> Client::receive() {
    const auto more = [&] {
        auto block = read_some();
        if (block) {
            input_ += *block;
        }
        return block.has_value();
    };
    std::size_t end = 0;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
        if (!more()) {
            return std::nullopt;
        }
    }
    Answer answer;
    answer.head = input_.substr(0, end + 2);
    std::from_chars(answer.head.data() + 9, answer.head.data() + 12, answer.status);
    input_.erase(0, end + 4);
    std::size_t size = 0;
    if (const auto length = answer.field("Content-Length")) {
        std::from_chars(length->data(), length->data() + length->size(), size);
    }
    while (input_.size() < size) {
        if (!more()) {
            return std::nullopt;
        }
    }
    answer.body = input_.substr(0, size);
    input_.erase(0, size);
    return answer;
}

bool Client::wait_closed() {
    for (;;) {
        char block[16384];
        const ssize_t got = ::recv(fd_, block, sizeof block, 0);
        if (got == 0) {
            return true;
        }
        if (got < 0) {
            return errno == ECONNRESET || errno == EPIPE;
        }
    }
}

void Client::reset() {
    linger option{};
    option.l_onoff = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &option, sizeof option);
    close();
}

void Client::close() {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

void Client::small_receive_window() {
    const int size = 2048;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

std::string post(std::string_view path, std::string_view body, std::string_view extra_fields) {
    std::string out = "POST ";
    out += path;
    out +=
        " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n";
    out += extra_fields;
    out += "\r\n";
    out += body;
    return out;
}

std::string get(std::string_view path) {
    return "GET " + std::string{path} + " HTTP/1.1\r\nHost: test\r\n\r\n";
}

std::vector<Route> test_routes() {
    std::vector<Route> routes;
    routes.push_back({Method::post, "/echo", "application/json",
                      [](Exchange& exchange) { exchange.response().body += exchange.request().body; }});
    routes.push_back({Method::get, "/hello", "", [](Exchange& exchange) { exchange.response().plain(200, "hello"); }});
    routes.push_back({Method::post, "/big", "", [](Exchange& exchange) {
                          std::size_t size = 0;
                          const std::string_view body = exchange.request().body;
                          std::from_chars(body.data(), body.data() + body.size(), size);
                          exchange.response().body.assign(size, 'b');
                      }});
    routes.push_back({Method::post, "/throw", "", [](Exchange&) { throw std::runtime_error("by request"); }});
    return routes;
}

ServerOptions test_options(Client::Mode mode) {
    ServerOptions options;
    options.routes = test_routes();
    if (mode == Client::Mode::tls) {
        options.identity = test_identity();
    }
    return options;
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        ++count;
    }
    return count;
}

std::size_t resident_kib() {
    std::ifstream file{"/proc/self/status"};
    for (std::string word; file >> word;) {
        if (word == "VmRSS:") {
            std::size_t kib = 0;
            file >> kib;
            return kib;
        }
    }
    return 0;
}

bool eventually(const std::function<bool()>& so) {
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (!so()) {
        if (std::chrono::steady_clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

}  // namespace ossa::net::test
