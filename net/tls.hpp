// TlsIdentity: who a TLS server is (certificate chain and key), whom it lets in (client CA, names), and every TLS
// setting. Immutable once made: a reload makes another one and publishes it in a SnapshotCell; handshakes that begin
// afterwards take the new one, connections that live keep the old one. TLS 1.2 and 1.3, AEAD suites with forward
// secrecy only, session tickets, ALPN http/1.1, no renegotiation, no compression. Not promised: revocation (no CRL, no
// OCSP), and resumption across a reload (the ticket key is the identity's own).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "net/snapshot.hpp"

struct ssl_ctx_st;

namespace ossa::net {

struct TlsSource {
    std::string certificate_pem;  // the leaf first, then its chain
    std::string key_pem;          // not encrypted
    std::string client_ca_pem;    // empty: no client certificate is asked for
    // With a client CA: the client's common name or one of its DNS names must be among these; empty: any client of the
    // CA.
    std::vector<std::string> client_names;
};

class TlsIdentity {
  public:
    using TimePoint = std::chrono::sys_time<std::chrono::seconds>;

    // Errors (invalid), each naming the part: no certificate or key in the text, an encrypted key, a key of another
    // certificate, expired, not valid yet, an unusable CA.
    static Result<std::shared_ptr<const TlsIdentity>> make(
        const TlsSource& source,
        TimePoint now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));

    ~TlsIdentity();
    TlsIdentity(const TlsIdentity&) = delete;
    TlsIdentity& operator=(const TlsIdentity&) = delete;

    // The earliest end among the leaf and the chain: what the expiry metric shows.
    TimePoint not_after() const noexcept { return not_after_; }
    const std::string& subject() const noexcept { return subject_; }
    // SHA-256 of the leaf, hex: says in logs which certificate is served.
    const std::string& fingerprint() const noexcept { return fingerprint_; }
    ssl_ctx_st* context() const noexcept { return context_; }

  private:
    TlsIdentity() = default;
    ssl_ctx_st* context_ = nullptr;
    TimePoint not_after_{};
    std::string subject_;
    std::string fingerprint_;
};

using IdentityCell = SnapshotCell<TlsIdentity>;

}  // namespace ossa::net
