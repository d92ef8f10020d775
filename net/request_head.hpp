// RequestHead: the machine that turns the first bytes of a request into its parts, or into the HTTP status that refuses
// it. Beast parses; what Beast lets through and a proxy in front could read otherwise is refused here: a
// Transfer-Encoding other than exactly "chunked", one in HTTP/1.0, no or several Host fields, folded fields.
// ChunkedBody: the machine that takes chunk frames out of a body, in place. Strict: CRLF only, no sign or space in
// sizes. Both are pure: bytes in, state out; the same bytes in other pieces are taken, or not taken, alike. Not
// promised: that a head which is wrong is refused before it has ended; the limit and the caller's deadline end the
// wait.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "net/request.hpp"

namespace ossa::net {

enum class BodyKind : std::uint8_t { none, length, chunked };

class RequestHead : private boost::beast::http::basic_parser<true> {
  public:
    enum class Step : std::uint8_t { more, complete, refused };

    explicit RequestHead(std::size_t head_bytes_max);

    // `bytes` are all bytes from the first of the request on, also those of earlier calls; they may have moved in
    // memory.
    Step feed(std::string_view bytes);

    // After refused: 400, 417, 431 or 505, and why, for the log.
    unsigned status() const noexcept { return status_; }
    std::string_view reason() const noexcept { return reason_; }

    // After complete. The views are into `bytes` of the caller's choice: the same bytes, wherever they are now.
    std::size_t size() const noexcept { return size_; }
    Method method() const noexcept { return method_; }
    std::string_view target(std::string_view bytes) const noexcept { return of(target_, bytes); }
    std::string_view content_type(std::string_view bytes) const noexcept { return of(content_type_, bytes); }
    BodyKind body_kind() const noexcept { return body_kind_; }
    std::uint64_t content_length() const noexcept { return content_length_; }
    bool keep_alive() const noexcept { return keep_alive_; }
    bool expects_continue() const noexcept { return expects_continue_; }

  private:
    using Base = boost::beast::http::basic_parser<true>;
    using ErrorCodeRef = boost::beast::error_code&;
    using View = boost::beast::string_view;
    struct Range {
        std::uint32_t begin = 0;
        std::uint32_t length = 0;
    };

    static std::string_view of(Range range, std::string_view bytes) noexcept {
        return bytes.substr(range.begin, range.length);
    }
    Range range(View part) const noexcept;
    Step refuse(unsigned status, std::string_view reason) noexcept;
    Step finish();

    void on_request_impl(boost::beast::http::verb method, View method_text, View target, int version,
                         ErrorCodeRef ec) override;
    void on_field_impl(boost::beast::http::field name, View name_text, View value, ErrorCodeRef ec) override;
    void on_header_impl(ErrorCodeRef) override {}
    void on_response_impl(int, View, int, ErrorCodeRef) override {}
    void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCodeRef) override {}
    std::size_t on_body_impl(View body, ErrorCodeRef) override { return body.size(); }
    void on_chunk_header_impl(std::uint64_t, View, ErrorCodeRef) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, View body, ErrorCodeRef) override { return body.size(); }
    void on_finish_impl(ErrorCodeRef) override {}

    std::string_view bytes_;  // during feed only
    std::size_t size_ = 0;
    std::size_t head_bytes_max_;
    std::string_view reason_;
    std::uint64_t content_length_ = 0;
    Range target_;
    Range content_type_;
    unsigned status_ = 0;
    unsigned hosts_ = 0;
    unsigned content_types_ = 0;
    Method method_ = Method::other;
    BodyKind body_kind_ = BodyKind::none;
    bool http11_ = false;
    bool keep_alive_ = false;
    bool expects_continue_ = false;
    bool foreign_expectation_ = false;
    bool foreign_coding_ = false;
    bool folded_ = false;
};

class ChunkedBody {
  public:
    enum class Step : std::uint8_t { more, complete, too_large, malformed };

    // Of one size line with its extension, and of all trailers together.
    static constexpr std::size_t line_bytes_max = 4096;
    static constexpr std::size_t trailer_bytes_max = 8192;

    explicit ChunkedBody(std::size_t body_bytes_max) : body_bytes_max_(body_bytes_max) {}

    // Reads the frames in data[raw, end) and moves their content to data[decoded, ...), decoded <= raw. Both positions
    // advance; at complete, `raw` is behind the body's last byte.
    Step feed(char* data, std::size_t& decoded, std::size_t& raw, std::size_t end);

  private:
    enum class State : std::uint8_t {
        size_first,
        size,
        extension,
        size_lf,
        data,
        data_cr,
        data_lf,
        trailer_first,
        trailer,
        trailer_lf,
        last_lf
    };
    std::size_t body_bytes_max_;
    std::uint64_t size_ = 0;  // of the chunk, then what is left of it
    std::size_t body_ = 0;    // so far
    std::size_t line_ = 0;    // of the size line or the trailers
    State state_ = State::size_first;
};

}  // namespace ossa::net
