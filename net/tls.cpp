#include "net/tls.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <string>

namespace ossa::net {
namespace {

template <auto Free>
struct Deleter {
    template <class T>
    void operator()(T* it) const noexcept {
        Free(it);
    }
};
using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, Deleter<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;

// The suites of TLS 1.2: forward secrecy and AEAD. Those of TLS 1.3 are AEAD by definition.
constexpr const char* tls12_suites = "ECDHE+AESGCM:ECDHE+CHACHA20";

// Three of the largest records and their frames, so that a large body takes half the system calls. OpenSSL gives it
// back when nothing is left in it.
constexpr std::size_t read_ahead_bytes = std::size_t{3} * (16 * 1024 + 64);

std::string openssl_reason() {
    const unsigned long code = ERR_peek_last_error();
    ERR_clear_error();
    if (code == 0) {
        return "no further reason";
    }
    const char* const reason = ERR_reason_error_string(code);
    return reason != nullptr ? reason : "OpenSSL error " + std::to_string(code);
}

Error broken(std::string_view what) {
    return Error{ErrorCode::invalid, std::string{what} + ": " + openssl_reason()};
}

// Without it OpenSSL asks the terminal for the password of an encrypted key, and the program hangs.
int no_password(char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
}

BioPtr reader(const std::string& text) {
    return BioPtr{BIO_new_mem_buf(text.data(), static_cast<int>(std::min<std::size_t>(text.size(), 1U << 24U)))};
}

Result<std::vector<X509Ptr>> parse_certificates(const std::string& pem, std::string_view what) {
    const BioPtr bio = reader(pem);
    std::vector<X509Ptr> found;
    for (;;) {
        X509Ptr next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
        if (next) {
            found.push_back(std::move(next));
            continue;
        }
        const unsigned long code = ERR_peek_last_error();
        const bool at_end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
        if (!at_end) {
            return unexpected(broken(what));
        }
        ERR_clear_error();
        if (found.empty()) {
            return failure(ErrorCode::invalid, std::string{what} + ": no PEM certificate in it");
        }
        return found;
    }
}

Result<KeyPtr> parse_key(const std::string& pem) {
    const BioPtr bio = reader(pem);
    bool asked = false;
    KeyPtr key{PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, &asked)};
    if (key) {
        return key;
    }
    if (asked) {
        ERR_clear_error();
        return failure(ErrorCode::invalid, "private key: it is encrypted; give it without a password");
    }
    if (pem.find("PRIVATE KEY-----") == std::string::npos) {
        ERR_clear_error();
        return failure(ErrorCode::invalid, "private key: no PEM private key in it");  // OpenSSL says "unsupported"
    }
    return unexpected(broken("private key"));
}

Result<TlsIdentity::TimePoint> time_of(const ASN1_TIME* time) {
    std::tm broken_down{};
    if (ASN1_TIME_to_tm(time, &broken_down) != 1) {
        return unexpected(broken("certificate: its validity is unreadable"));
    }
    return TlsIdentity::TimePoint{std::chrono::seconds{timegm(&broken_down)}};
}

std::string utc(TlsIdentity::TimePoint time) {
    const std::time_t seconds = time.time_since_epoch().count();
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[40];
    const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text, length};
}

std::string name_text(X509* certificate) {
    const BioPtr out{BIO_new(BIO_s_mem())};
    X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
    char* data = nullptr;
    const long length = BIO_get_mem_data(out.get(), &data);
    return length > 0 ? std::string(data, static_cast<std::size_t>(length)) : std::string{};
}

std::string fingerprint_of(X509* certificate) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (X509_digest(certificate, EVP_sha256(), digest, &length) != 1) {
        return {};
    }
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (unsigned i = 0; i < length; ++i) {
        out += digits[digest[i] >> 4U];
        out += digits[digest[i] & 15U];
    }
    return out;
}

int choose_alpn(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* in, unsigned in_length,
                void*) {
    static constexpr unsigned char ours[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(&chosen, out_length, ours, sizeof ours, in, in_length) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

// The names live with the SSL_CTX, which connections keep alive longer than the TlsIdentity.
void free_names(void*, void* names, CRYPTO_EX_DATA*, int, long, void*) {
    delete static_cast<std::vector<std::string>*>(names);
}

int names_index() {
    static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_names);
    return index;
}

std::string_view view(const ASN1_STRING* text) {
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
            static_cast<std::size_t>(ASN1_STRING_length(text))};
}

bool has_name(X509* certificate, const std::vector<std::string>& allowed) {
    const auto among = [&](std::string_view name) {
        return std::find(allowed.begin(), allowed.end(), name) != allowed.end();
    };
    X509_NAME* const subject = X509_get_subject_name(certificate);
    for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
        unsigned char* utf8 = nullptr;
        const int length = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
        const bool found = length >= 0 && among({reinterpret_cast<char*>(utf8), static_cast<std::size_t>(length)});
        OPENSSL_free(utf8);
        if (found) {
            return true;
        }
    }
    const NamesPtr others{
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
    for (int i = 0; others && i < sk_GENERAL_NAME_num(others.get()); ++i) {
        const GENERAL_NAME* const name = sk_GENERAL_NAME_value(others.get(), i);
        if (name->type == GEN_DNS && among(view(name->d.dNSName))) {
            return true;
        }
    }
    return false;
}

int verify_client(int chain_is_good, X509_STORE_CTX* store) {
    if (chain_is_good != 1 || X509_STORE_CTX_get_error_depth(store) != 0) {
        return chain_is_good;
    }
    const auto* ssl = static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    const auto* names =
        static_cast<const std::vector<std::string>*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), names_index()));
    if (names == nullptr || names->empty() || has_name(X509_STORE_CTX_get_current_cert(store), *names)) {
        return 1;
    }
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

Result<void> require_clients(SSL_CTX* context, const TlsSource& source) {
    OSSA_TRY(const std::vector<X509Ptr> authorities, parse_certificates(source.client_ca_pem, "client CA"));
    X509_STORE* const store = SSL_CTX_get_cert_store(context);
    for (const X509Ptr& authority : authorities) {
        if (X509_STORE_add_cert(store, authority.get()) != 1 || SSL_CTX_add_client_CA(context, authority.get()) != 1) {
            return unexpected(broken("client CA"));
        }
    }
    auto names = std::make_unique<std::vector<std::string>>(source.client_names);
    if (SSL_CTX_set_ex_data(context, names_index(), names.get()) != 1) {
        return unexpected(broken("client names"));
    }
    names.release();
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify_client);
    return {};
}

Result<void> apply_settings(SSL_CTX* context) {
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_PRIORITIZE_CHACHA);
    if (SSL_CTX_set_cipher_list(context, tls12_suites) != 1 ||
        SSL_CTX_set_ciphersuites(context,
                                 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") != 1) {
        return unexpected(broken("cipher suites"));
    }
    SSL_CTX_set_mode(context,
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    // A peer that sends key updates or other records without data for ever must not keep us inside one SSL_read.
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, read_ahead_bytes);

    // Tickets only: nothing is kept here, so resumption costs no memory. One ticket a handshake is what one client
    // uses.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 1);
    static constexpr unsigned char session_context[] = "ossa";
    SSL_CTX_set_session_id_context(context, session_context, sizeof session_context - 1);

    SSL_CTX_set_alpn_select_cb(context, choose_alpn, nullptr);
    return {};
}

}  // namespace

TlsIdentity::~TlsIdentity() {
    SSL_CTX_free(context_);
}

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::make(const TlsSource& source, TimePoint now) {
    ERR_clear_error();
    OSSA_TRY(const std::vector<X509Ptr> chain, parse_certificates(source.certificate_pem, "certificate"));
    OSSA_TRY(const KeyPtr key, parse_key(source.key_pem));

    const std::shared_ptr<TlsIdentity> made{new TlsIdentity};
    made->subject_ = name_text(chain.front().get());
    made->fingerprint_ = fingerprint_of(chain.front().get());
    made->not_after_ = TimePoint::max();
    for (const X509Ptr& certificate : chain) {
        OSSA_TRY(const TimePoint begins, time_of(X509_get0_notBefore(certificate.get())));
        OSSA_TRY(const TimePoint ends, time_of(X509_get0_notAfter(certificate.get())));
        const std::string which = "certificate \"" + name_text(certificate.get()) + "\"";
        if (now >= ends) {
            return failure(ErrorCode::invalid, which + " expired at " + utc(ends));
        }
        if (now < begins) {
            return failure(ErrorCode::invalid, which + " is not valid before " + utc(begins));
        }
        made->not_after_ = std::min(made->not_after_, ends);
    }
    if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
        ERR_clear_error();
        return failure(ErrorCode::invalid, "private key: it does not belong to certificate \"" + made->subject_ + "\"");
    }

    made->context_ = SSL_CTX_new(TLS_server_method());
    if (made->context_ == nullptr) {
        return unexpected(broken("TLS context"));
    }
    OSSA_CHECK(apply_settings(made->context_));
    if (SSL_CTX_use_certificate(made->context_, chain.front().get()) != 1) {
        return unexpected(broken("certificate"));
    }
    for (std::size_t i = 1; i < chain.size(); ++i) {
        if (SSL_CTX_add1_chain_cert(made->context_, chain[i].get()) != 1) {
            return unexpected(broken("certificate chain"));
        }
    }
    if (SSL_CTX_use_PrivateKey(made->context_, key.get()) != 1) {
        return unexpected(broken("private key"));
    }
    if (!source.client_ca_pem.empty()) {
        OSSA_CHECK(require_clients(made->context_, source));
    }
    return std::shared_ptr<const TlsIdentity>{made};
}

}  // namespace ossa::net
