#include "certs/files.hpp"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "net/log.hpp"
#include "net/metrics.hpp"

namespace ossa::certs {
namespace {

constexpr std::size_t file_bytes_max = std::size_t{1} << 20;

struct CloseFile {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
};

Result<std::string> read_file(const std::string& path) {
    const std::unique_ptr<std::FILE, CloseFile> file{std::fopen(path.c_str(), "rbe")};
    if (!file) {
        const int error = errno;
        return failure(error == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
                       path + ": " + std::generic_category().message(error));
    }
    std::string text;
    char block[4096];
    std::size_t got = 0;
    while ((got = std::fread(block, 1, sizeof block, file.get())) != 0) {
        text.append(block, got);
        if (text.size() > file_bytes_max) {
            return failure(ErrorCode::invalid, path + ": too large for a certificate or key");
        }
    }
    if (std::ferror(file.get()) != 0) {
        return failure(ErrorCode::unavailable, path + ": cannot be read");
    }
    return text;
}

Result<net::TlsSource> read_source(const FilePaths& paths) {
    net::TlsSource source;
    OSSA_TRY(source.certificate_pem, read_file(paths.certificate));
    OSSA_TRY(source.key_pem, read_file(paths.key));
    if (!paths.client_ca.empty()) {
        OSSA_TRY(source.client_ca_pem, read_file(paths.client_ca));
        if (source.client_ca_pem.empty()) {
            return failure(ErrorCode::invalid, paths.client_ca + ": empty");  // must not switch the check off
        }
    }
    source.client_names = paths.client_names;
    return source;
}

// Kept instead of the texts, so that the key is in memory once.
std::string digest_of(const net::TlsSource& source) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    std::string all;
    for (const std::string* part : {&source.certificate_pem, &source.key_pem, &source.client_ca_pem}) {
        all += std::to_string(part->size()) + ":" + *part;
    }
    if (EVP_Digest(all.data(), all.size(), digest, &length, EVP_sha256(), nullptr) != 1) {
        return {};
    }
    return {reinterpret_cast<char*>(digest), length};
}

Result<std::shared_ptr<const net::TlsIdentity>> make_identity(const net::TlsSource& source, const FilePaths& paths) {
    auto made = net::TlsIdentity::make(source);
    if (!made) {
        return unexpected(std::move(made).error().with(paths.certificate + ", " + paths.key));
    }
    return made;
}

}  // namespace

Result<std::shared_ptr<const net::TlsIdentity>> load_identity(const FilePaths& paths) {
    OSSA_TRY(const net::TlsSource source, read_source(paths));
    return make_identity(source, paths);
}

FileWatcher::FileWatcher(boost::asio::io_context& context, FilePaths paths, std::shared_ptr<net::IdentityCell> cell,
                         net::Metrics& metrics, std::chrono::milliseconds interval)
    : timer_(context),
      paths_(std::move(paths)),
      cell_(std::move(cell)),
      interval_(interval),
      reloads_(metrics.counter("ossa_tls_reloads_total", "Identities taken from changed files.")),
      failures_(metrics.counter("ossa_tls_reload_failures_total", "Changed files that held no usable identity.")) {
    metrics.read("ossa_certificate_expiry_seconds", "When the certificate in use ends, in seconds since 1970.",
                 net::Metrics::ReadAs::gauge, [cell = cell_] {
                     const auto identity = cell->read();
                     return identity ? static_cast<double>(identity->not_after().time_since_epoch().count()) : 0.0;
                 });
}

FileWatcher::~FileWatcher() {
    stop();
}

Result<void> FileWatcher::start() {
    OSSA_TRY(const net::TlsSource source, read_source(paths_));
    OSSA_TRY(auto identity, make_identity(source, paths_));
    seen_ = digest_of(source);
    OSSA_LOG(info, "TLS identity loaded", {"subject", identity->subject()}, {"sha256", identity->fingerprint()});
    cell_->publish(std::move(identity));
    arm();
    return {};
}

void FileWatcher::stop() {
    stopped_ = true;
    timer_.cancel();
}

void FileWatcher::arm() {
    timer_.expires_after(interval_);
    timer_.async_wait([this](const boost::system::error_code& ec) {
        if (!ec && !stopped_) {
            look();
            arm();
        }
    });
}

void FileWatcher::look() {
    auto source = read_source(paths_);
    const std::string digest = source ? digest_of(*source) : source.error().message();
    if (digest == seen_) {
        refused_.clear();
        return;
    }
    auto identity = source ? make_identity(*source, paths_) : unexpected(std::move(source).error());
    if (!identity) {
        if (digest != refused_) {
            refused_ = digest;
            failures_.add();
            OSSA_LOG(error, "TLS identity not reloaded, the old one stays", {"error", identity.error().message()});
        }
        return;
    }
    seen_ = digest;
    refused_.clear();
    reloads_.add();
    OSSA_LOG(info, "TLS identity reloaded", {"subject", (*identity)->subject()},
             {"sha256", (*identity)->fingerprint()});
    cell_->publish(std::move(*identity));
}

}  // namespace ossa::certs
