#include "net/stream.hpp"

#include <cstring>
#include <system_error>

namespace ossa::net {

Io Stream::judge_errno(Io would_block) noexcept {
    const int error = errno;
    if (error == EAGAIN || error == EWOULDBLOCK) {
        return would_block;
    }
    broken_ = true;
    failure_ = std::generic_category().message(error);
    return Io::failed;
}

Io Stream::judge(int result) noexcept {
    const int error = errno;
    switch (SSL_get_error(ssl_, result)) {
        case SSL_ERROR_WANT_READ: return Io::want_read;
        case SSL_ERROR_WANT_WRITE: return Io::want_write;
        case SSL_ERROR_ZERO_RETURN: return Io::end;
        case SSL_ERROR_SYSCALL:
            broken_ = true;
            failure_ = error != 0 ? std::generic_category().message(error) : std::string{"connection lost"};
            break;
        default: {
            broken_ = true;
            const unsigned long code = ERR_peek_last_error();
            if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
                ERR_clear_error();
                return Io::end;
            }
            const char* const reason = ERR_reason_error_string(code);
            failure_ = reason != nullptr ? reason : "TLS error";
            break;
        }
    }
    ERR_clear_error();
    return Io::failed;
}

}  // namespace ossa::net
