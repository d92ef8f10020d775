// Stream: reads and writes on a non-blocking socket, through TLS or not, with results that say what to wait for.
// TLS works straight on the socket's descriptor: no buffers between OpenSSL and the kernel (docs/adr/0003). Private to
// net. Belongs to one thread. Does not own the descriptor.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ossa::net {

enum class Io : std::uint8_t { ok, want_read, want_write, end, failed };

class Stream {
  public:
    Stream(int fd, SSL* ssl) noexcept : fd_(fd), ssl_(ssl) {}  // takes ssl; nullptr: plain
    ~Stream() { SSL_free(ssl_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    bool encrypted() const noexcept { return ssl_ != nullptr; }

    Io shake_hands() noexcept {
        clear_errors();
        const int result = SSL_accept(ssl_);
        return result == 1 ? Io::ok : judge(result);
    }

    Io read(char* to, std::size_t size, std::size_t& done) noexcept {
        if (ssl_ != nullptr) {
            clear_errors();
            const int result = SSL_read_ex(ssl_, to, size, &done);
            return result == 1 ? Io::ok : judge(result);
        }
        const ssize_t result = retry([&] { return ::recv(fd_, to, size, 0); });
        if (result > 0) {
            done = static_cast<std::size_t>(result);
            return Io::ok;
        }
        return result == 0 ? Io::end : judge_errno(Io::want_read);
    }

    Io write(const char* from, std::size_t size, std::size_t& done) noexcept {
        if (ssl_ != nullptr) {
            clear_errors();
            const int result = SSL_write_ex(ssl_, from, size, &done);
            return result == 1 ? Io::ok : judge(result);
        }
        const ssize_t result = retry([&] { return ::send(fd_, from, size, MSG_NOSIGNAL); });
        if (result >= 0) {
            done = static_cast<std::size_t>(result);
            return Io::ok;
        }
        return judge_errno(Io::want_write);
    }

    // Bytes that the kernel no longer has, so that waiting for the socket would miss them.
    bool has_buffered_input() const noexcept { return ssl_ != nullptr && SSL_has_pending(ssl_) == 1; }

    // Says goodbye in our direction; the peer may still send.
    void end_writing() noexcept {
        if (ssl_ != nullptr && !broken_ && SSL_is_init_finished(ssl_) == 1) {
            clear_errors();
            (void)SSL_shutdown(ssl_);
        }
        (void)::shutdown(fd_, SHUT_WR);
    }

    // Takes bytes off the socket, encrypted or not, and forgets them.
    Io drop(char* scratch, std::size_t size, std::size_t& done) noexcept {
        const ssize_t result = retry([&] { return ::recv(fd_, scratch, size, 0); });
        if (result > 0) {
            done = static_cast<std::size_t>(result);
            return Io::ok;
        }
        return result == 0 ? Io::end : judge_errno(Io::want_read);
    }

    // Why the last call failed, for the log.
    const std::string& failure() const noexcept { return failure_; }

  private:
    static void clear_errors() noexcept {
        if (ERR_peek_error() != 0) {
            ERR_clear_error();
        }
    }

    template <class F>
    static ssize_t retry(F&& call) noexcept {
        for (;;) {
            const ssize_t result = call();
            if (result >= 0 || errno != EINTR) {
                return result;
            }
        }
    }

    Io judge_errno(Io would_block) noexcept;
    Io judge(int result) noexcept;

    int fd_;
    bool broken_ = false;  // after a fatal TLS error nothing may be sent
    SSL* ssl_;
    std::string failure_;
};

}  // namespace ossa::net
