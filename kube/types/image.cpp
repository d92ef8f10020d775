#include "kube/types/image.hpp"

namespace ossa::kube {
namespace {

using Parsed = tl::expected<ImageReference, std::string_view>;

constexpr std::size_t path_max = 255;
constexpr std::size_t host_max = 253 + 6;  // a DNS name and ":65535"
constexpr std::size_t tag_max = 128;
constexpr std::size_t digest_max = 7 + 128;  // "sha512:" and its digits
constexpr std::size_t text_max = host_max + 1 + path_max + 1 + tag_max + 1 + digest_max;

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
constexpr bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}
constexpr bool is_lower_alnum(char c) {
    return is_lower(c) || is_digit(c);
}
constexpr bool is_alnum(char c) {
    return is_lower_alnum(c) || is_upper(c);
}

template <class Allowed>
bool all(std::string_view text, Allowed allowed) noexcept {
    for (const char c : text) {
        if (!allowed(c)) {
            return false;
        }
    }
    return !text.empty();
}

bool is_tag(std::string_view text) noexcept {
    return text.size() <= tag_max && !text.empty() && text[0] != '.' && text[0] != '-' &&
           all(text, [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_digest(std::string_view text) noexcept {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
        return false;
    }
    const std::string_view algorithm = text.substr(0, colon);
    const std::string_view hex = text.substr(colon + 1);
    const std::size_t length = algorithm == "sha256"   ? 64U
                               : algorithm == "sha384" ? 96U
                               : algorithm == "sha512" ? 128U
                                                       : 0U;
    return length != 0 && hex.size() == length &&
           all(hex, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

// Lower-case letters and digits, parted by one '.', one or two '_', or any number of '-'.
bool is_component(std::string_view text) noexcept {
    if (text.empty() || !is_lower_alnum(text.front()) || !is_lower_alnum(text.back())) {
        return false;
    }
    for (std::size_t i = 0; i < text.size();) {
        if (is_lower_alnum(text[i])) {
            ++i;
            continue;
        }
        std::size_t end = i;
        while (end < text.size() && text[end] == text[i]) {
            ++end;
        }
        const std::size_t run = end - i;
        const bool separates = (text[i] == '.' && run == 1) || (text[i] == '_' && run <= 2) || text[i] == '-';
        if (!separates || !is_lower_alnum(text[end])) {  // the last character is alphanumeric: end is inside
            return false;
        }
        i = end;
    }
    return true;
}

bool is_host(std::string_view text) noexcept {
    std::string_view name = text;
    if (name.starts_with('[')) {
        const std::size_t end = name.find(']');
        if (end == std::string_view::npos || !all(name.substr(1, end - 1), [](char c) {
                return is_digit(c) || c == ':' || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
            })) {
            return false;
        }
        name.remove_prefix(end + 1);
        return name.empty() || (name[0] == ':' && name.size() <= 6 && all(name.substr(1), is_digit));
    }
    if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) {
        if (name.size() - colon > 6 || !all(name.substr(colon + 1), is_digit)) {
            return false;
        }
        name = name.substr(0, colon);
    }
    while (true) {
        const std::size_t dot = name.find('.');
        const std::string_view label = name.substr(0, dot);
        if (!all(label, [](char c) { return is_alnum(c) || c == '-'; }) || label.front() == '-' ||
            label.back() == '-') {
            return false;
        }
        if (dot == std::string_view::npos) {
            return true;
        }
        name.remove_prefix(dot + 1);
    }
}

// The runtimes take a first part for a host when it cannot be a part of a path.
bool looks_like_host(std::string_view part) noexcept {
    if (part == "localhost") {
        return true;
    }
    for (const char c : part) {
        if (c == '.' || c == ':' || is_upper(c)) {
            return true;
        }
    }
    return false;
}

}  // namespace

Parsed ImageReference::parse(std::string_view text) noexcept {
    if (text.empty()) {
        return tl::unexpected(std::string_view{"must not be empty"});
    }
    if (text.size() > text_max) {
        return tl::unexpected(std::string_view{"is too long for an image reference"});
    }
    ImageReference out;
    if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
        out.digest = text.substr(at + 1);
        if (!is_digest(out.digest)) {
            return tl::unexpected(
                std::string_view{"must have a digest such as sha256: and 64 hexadecimal digits behind the '@'"});
        }
        text = text.substr(0, at);
    }
    // The tag stands behind the last ':' that no '/' follows.
    const std::size_t slash = text.rfind('/');
    const std::size_t colon = text.find(':', slash == std::string_view::npos ? 0 : slash);
    if (colon != std::string_view::npos) {
        out.tag = text.substr(colon + 1);
        if (!is_tag(out.tag)) {
            return tl::unexpected(std::string_view{
                "must have a tag of letters, digits, '_', '.' and '-', at most 128 characters, behind the ':'"});
        }
        text = text.substr(0, colon);
    }
    out.path = text;
    const std::size_t first = text.find('/');
    if (first != std::string_view::npos && (text.starts_with('[') || looks_like_host(text.substr(0, first)))) {
        out.host = text.substr(0, first);
        out.path = text.substr(first + 1);
        if (out.host.size() > host_max || !is_host(out.host)) {
            return tl::unexpected(std::string_view{"must have a host name, with a port if any, before the first '/'"});
        }
    }
    if (out.path.size() > path_max) {
        return tl::unexpected(std::string_view{"must have at most 255 characters in its repository name"});
    }
    std::string_view rest = out.path;
    while (true) {
        const std::size_t end = rest.find('/');
        if (!is_component(rest.substr(0, end))) {
            return tl::unexpected(
                std::string_view{"must have a repository name of a-z, 0-9, single separators ('.', '_', '-') and '/'"});
        }
        if (end == std::string_view::npos) {
            break;
        }
        rest.remove_prefix(end + 1);
    }
    if (out.host.empty() && out.path.size() == 64 &&
        all(out.path, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); })) {
        return tl::unexpected(std::string_view{"must not be a bare image id of 64 hexadecimal digits"});
    }
    return out;
}

}  // namespace ossa::kube
