#include "net/request_head.hpp"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/verb.hpp>
#include <cstring>

namespace ossa::net {
namespace {

namespace http = boost::beast::http;

Method method_of(http::verb verb) noexcept {
    switch (verb) {
        case http::verb::get: return Method::get;
        case http::verb::head: return Method::head;
        case http::verb::post: return Method::post;
        case http::verb::put: return Method::put;
        case http::verb::patch: return Method::patch;
        case http::verb::delete_: return Method::delete_;
        case http::verb::options: return Method::options;
        default: return Method::other;
    }
}

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

}  // namespace

RequestHead::RequestHead(std::size_t head_bytes_max) : head_bytes_max_(head_bytes_max) {
    // Beast counts the request line and the fields apart; their sum is checked in feed().
    header_limit(static_cast<std::uint32_t>(head_bytes_max));
    body_limit(boost::none);
    eager(false);
}

RequestHead::Range RequestHead::range(View part) const noexcept {
    return {static_cast<std::uint32_t>(part.data() - bytes_.data()), static_cast<std::uint32_t>(part.size())};
}

RequestHead::Step RequestHead::refuse(unsigned status, std::string_view reason) noexcept {
    status_ = status;
    reason_ = reason;
    return Step::refused;
}

RequestHead::Step RequestHead::feed(std::string_view bytes) {
    bytes_ = bytes;
    boost::beast::error_code ec;
    while (!is_header_done()) {
        const auto rest = bytes.substr(size_);
        size_ += put(boost::asio::const_buffer{rest.data(), rest.size()}, ec);
        if (ec == http::error::need_more) {
            return bytes.size() > head_bytes_max_ ? refuse(431, "head too large") : Step::more;
        }
        if (ec == http::error::header_limit) {
            return refuse(431, "head too large");
        }
        if (ec == http::error::bad_version) {
            return refuse(505, "not HTTP/1.0 or HTTP/1.1");
        }
        if (ec) {
            return refuse(400, "malformed head");
        }
    }
    return size_ > head_bytes_max_ ? refuse(431, "head too large") : finish();
}

RequestHead::Step RequestHead::finish() {
    if (folded_) {
        return refuse(400, "folded header field");
    }
    if (hosts_ > 1 || (hosts_ == 0 && http11_)) {
        return refuse(400, "not exactly one Host field");
    }
    if (content_types_ > 1) {
        return refuse(400, "several Content-Type fields");
    }
    if (foreign_coding_) {
        return refuse(400, "transfer coding other than chunked");
    }
    if (chunked() && !http11_) {
        return refuse(400, "chunked body in HTTP/1.0");
    }
    if (foreign_expectation_) {
        return refuse(417, "unknown expectation");
    }
    keep_alive_ = http11_ && Base::keep_alive();
    if (chunked()) {
        body_kind_ = BodyKind::chunked;
    } else if (const auto length = Base::content_length()) {
        body_kind_ = BodyKind::length;
        content_length_ = *length;
    }
    expects_continue_ = expects_continue_ && http11_;
    return Step::complete;
}

void RequestHead::on_request_impl(http::verb method, View, View target, int version, ErrorCodeRef) {
    method_ = method_of(method);
    target_ = range(target);
    http11_ = version == 11;
}

void RequestHead::on_field_impl(http::field name, View, View value, ErrorCodeRef) {
    // Beast joins the lines of a folded field in a buffer of its own.
    folded_ =
        folded_ || (!value.empty() && (value.data() < bytes_.data() || value.data() >= bytes_.data() + bytes_.size()));
    switch (name) {
        case http::field::host: ++hosts_; break;
        case http::field::content_type:
            ++content_types_;
            if (!folded_ && !value.empty()) {
                content_type_ = range(value);
            }
            break;
        case http::field::expect:
            expects_continue_ = boost::beast::iequals(value, "100-continue");
            foreign_expectation_ = foreign_expectation_ || !expects_continue_;
            break;
        case http::field::transfer_encoding:
            foreign_coding_ = foreign_coding_ || !boost::beast::iequals(value, "chunked");
            break;
        default: break;
    }
}

ChunkedBody::Step ChunkedBody::feed(char* data, std::size_t& decoded, std::size_t& raw, std::size_t end) {
    while (raw < end) {
        const char c = data[raw];
        switch (state_) {
            case State::size_first:
            case State::size: {
                if (++line_ > line_bytes_max) {
                    return Step::malformed;
                }
                if (const int digit = hex_digit(c); digit >= 0) {
                    if (size_ > (std::uint64_t{1} << 56U)) {
                        return Step::too_large;
                    }
                    size_ = size_ * 16 + static_cast<unsigned>(digit);
                    state_ = State::size;
                } else if (state_ == State::size_first) {
                    return Step::malformed;
                } else if (c == ';') {
                    state_ = State::extension;
                } else if (c == '\r') {
                    state_ = State::size_lf;
                } else {
                    return Step::malformed;
                }
                ++raw;
                break;
            }
            case State::extension:
                if (++line_ > line_bytes_max || c == '\n' || c == '\0') {
                    return Step::malformed;
                }
                if (c == '\r') {
                    state_ = State::size_lf;
                }
                ++raw;
                break;
            case State::size_lf:
                if (c != '\n') {
                    return Step::malformed;
                }
                if (size_ > body_bytes_max_ - body_) {
                    return Step::too_large;
                }
                line_ = 0;
                state_ = size_ == 0 ? State::trailer_first : State::data;
                ++raw;
                break;
            case State::data: {
                const std::size_t take = size_ < end - raw ? static_cast<std::size_t>(size_) : end - raw;
                std::memmove(data + decoded, data + raw, take);
                decoded += take;
                raw += take;
                body_ += take;
                size_ -= take;
                if (size_ == 0) {
                    state_ = State::data_cr;
                }
                break;
            }
            case State::data_cr:
                if (c != '\r') {
                    return Step::malformed;
                }
                state_ = State::data_lf;
                ++raw;
                break;
            case State::data_lf:
                if (c != '\n') {
                    return Step::malformed;
                }
                state_ = State::size_first;
                ++raw;
                break;
            case State::trailer_first:
            case State::trailer:
                if (++line_ > trailer_bytes_max || c == '\n' || c == '\0') {
                    return Step::malformed;
                }
                if (c == '\r') {
                    state_ = state_ == State::trailer_first ? State::last_lf : State::trailer_lf;
                } else {
                    state_ = State::trailer;
                }
                ++raw;
                break;
            case State::trailer_lf:
                if (c != '\n') {
                    return Step::malformed;
                }
                state_ = State::trailer_first;
                ++raw;
                break;
            case State::last_lf:
                if (c != '\n') {
                    return Step::malformed;
                }
                ++raw;
                return Step::complete;
        }
    }
    return Step::more;
}

}  // namespace ossa::net
