#include "certs/files.hpp"

#include <openssl/evp.h>

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstdio>
#include <mutex>
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

// Shared with the timer's handler, which may be on its way when the watcher ends.
struct FileWatcher::State : std::enable_shared_from_this<State> {
    State(boost::asio::io_context& context, FilePaths paths_in, std::shared_ptr<net::IdentityCell> cell_in,
          net::Metrics& metrics, std::chrono::milliseconds interval_in)
        : timer(context),
          paths(std::move(paths_in)),
          cell(std::move(cell_in)),
          interval(interval_in),
          reloads(metrics.counter("ossa_tls_reloads_total", "Identities taken from changed files.")),
          failures(metrics.counter("ossa_tls_reload_failures_total", "Changed files that held no usable identity.")) {}

    // All with the mutex held.
    Result<void> load();
    void look();
    void arm();

    std::mutex mutex;
    boost::asio::steady_timer timer;
    const FilePaths paths;
    const std::shared_ptr<net::IdentityCell> cell;
    const std::chrono::milliseconds interval;
    net::Counter& reloads;
    net::Counter& failures;
    std::string seen;     // digest of what the files held when the identity was made
    std::string refused;  // digest of what was refused last, so that one bad pair is logged once
    bool stopped = false;
};

Result<void> FileWatcher::State::load() {
    OSSA_TRY(const net::TlsSource source, read_source(paths));
    OSSA_TRY(auto identity, make_identity(source, paths));
    seen = digest_of(source);
    OSSA_LOG(info, "TLS identity loaded", {"subject", identity->subject()}, {"sha256", identity->fingerprint()});
    cell->publish(std::move(identity));
    return {};
}

void FileWatcher::State::arm() {
    timer.expires_after(interval);
    timer.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
        const std::lock_guard lock{self->mutex};
        if (!ec && !self->stopped) {
            self->look();
            self->arm();
        }
    });
}

void FileWatcher::State::look() {
    auto source = read_source(paths);
    const std::string digest = source ? digest_of(*source) : source.error().message();
    if (digest == seen) {
        refused.clear();
        return;
    }
    auto identity = source ? make_identity(*source, paths) : unexpected(std::move(source).error());
    if (!identity) {
        if (digest != refused) {
            refused = digest;
            failures.add();
            OSSA_LOG(error, "TLS identity not reloaded, the old one stays", {"error", identity.error().message()});
        }
        return;
    }
    seen = digest;
    refused.clear();
    reloads.add();
    OSSA_LOG(info, "TLS identity reloaded", {"subject", (*identity)->subject()},
             {"sha256", (*identity)->fingerprint()});
    cell->publish(std::move(*identity));
}

FileWatcher::FileWatcher(boost::asio::io_context& context, FilePaths paths, std::shared_ptr<net::IdentityCell> cell,
                         net::Metrics& metrics, std::chrono::milliseconds interval) {
    metrics.read("ossa_certificate_expiry_seconds", "When the certificate in use ends, in seconds since 1970.",
                 net::Metrics::ReadAs::gauge, [cell] {
                     const auto identity = cell->read();
                     return identity ? static_cast<double>(identity->not_after().time_since_epoch().count()) : 0.0;
                 });
    state_ = std::make_shared<State>(context, std::move(paths), std::move(cell), metrics, interval);
}

FileWatcher::~FileWatcher() {
    stop();
}

Result<void> FileWatcher::start() {
    const std::lock_guard lock{state_->mutex};
    OSSA_CHECK(state_->load());
    state_->arm();
    return {};
}

void FileWatcher::stop() {
    const std::lock_guard lock{state_->mutex};
    state_->stopped = true;
    state_->timer.cancel();
}

void FileWatcher::look() {
    const std::lock_guard lock{state_->mutex};
    state_->look();
}

}  // namespace ossa::certs
