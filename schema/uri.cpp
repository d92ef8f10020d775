#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "schema/plan.hpp"

namespace ossa::schema {
namespace {

enum CharClass : std::uint8_t {
    alpha = 1,
    digit = 2,
    unreserved = 4,  // ALPHA DIGIT - . _ ~
    sub_delim = 8,   // ! $ & ' ( ) * + , ; =
    hex = 16,
};

constexpr std::array<std::uint8_t, 256> classes = [] {
    std::array<std::uint8_t, 256> out{};
    const auto mark = [&](std::string_view chars, unsigned bits) {
        for (const char c : chars) {
            auto& entry = out[static_cast<unsigned char>(c)];
            entry = static_cast<std::uint8_t>(entry | bits);
        }
    };
    mark("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", alpha | unreserved);
    mark("0123456789", digit | unreserved);
    mark("-._~", unreserved);
    mark("!$&'()*+,;=", sub_delim);
    mark("0123456789abcdefABCDEF", hex);
    return out;
}();

bool is(char c, unsigned bits) noexcept {
    return (classes[static_cast<unsigned char>(c)] & bits) != 0;
}

// Every character is unreserved, a sub-delim, a percent-encoded byte or one of `more`.
bool consists_of(std::string_view text, std::string_view more) noexcept {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            if (i + 2 >= text.size() || !is(text[i + 1], hex) || !is(text[i + 2], hex)) {
                return false;
            }
            i += 2;
        } else if (!is(text[i], unreserved | sub_delim) && more.find(text[i]) == std::string_view::npos) {
            return false;
        }
    }
    return true;
}

bool is_ip_literal(std::string_view inside) noexcept {
    if (!inside.empty() && (inside.front() == 'v' || inside.front() == 'V')) {  // IPvFuture = "v" 1*HEXDIG "." 1*(…)
        const std::size_t dot = inside.find('.');
        return dot != std::string_view::npos && dot > 1 && dot + 1 < inside.size() &&
               std::all_of(inside.begin() + 1, inside.begin() + static_cast<std::ptrdiff_t>(dot),
                           [](char c) { return is(c, hex); }) &&
               std::all_of(inside.begin() + static_cast<std::ptrdiff_t>(dot) + 1, inside.end(),
                           [](char c) { return is(c, unreserved | sub_delim) || c == ':'; });
    }
    std::array<char, 46> text{};
    if (inside.empty() || inside.size() >= text.size() || inside.find('\0') != std::string_view::npos) {
        return false;
    }
    std::copy(inside.begin(), inside.end(), text.begin());
    in6_addr address{};
    return inet_pton(AF_INET6, text.data(), &address) == 1;
}

bool is_authority(std::string_view text) noexcept {
    if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
        if (!consists_of(text.substr(0, at), ":")) {
            return false;
        }
        text.remove_prefix(at + 1);
    }
    std::string_view port;
    if (!text.empty() && text.front() == '[') {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos || !is_ip_literal(text.substr(1, end - 1))) {
            return false;
        }
        port = text.substr(end + 1);
        if (!port.empty() && port.front() != ':') {
            return false;
        }
    } else {
        const std::size_t colon = std::min(text.find(':'), text.size());
        if (!consists_of(text.substr(0, colon), "")) {
            return false;
        }
        port = text.substr(colon);
    }
    return std::all_of(port.begin() + (port.empty() ? 0 : 1), port.end(), [](char c) { return is(c, digit); });
}

}  // namespace

bool is_absolute_uri(std::string_view text) noexcept {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0 || !is(text.front(), alpha) ||
        !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon),
                     [](char c) { return is(c, alpha | digit) || c == '+' || c == '-' || c == '.'; })) {
        return false;
    }
    text.remove_prefix(colon + 1);
    if (const std::size_t hash = text.find('#'); hash != std::string_view::npos) {
        if (!consists_of(text.substr(hash + 1), ":@/?")) {
            return false;
        }
        text = text.substr(0, hash);
    }
    if (const std::size_t question = text.find('?'); question != std::string_view::npos) {
        if (!consists_of(text.substr(question + 1), ":@/?")) {
            return false;
        }
        text = text.substr(0, question);
    }
    if (text.starts_with("//")) {
        text.remove_prefix(2);
        const std::size_t slash = std::min(text.find('/'), text.size());
        if (!is_authority(text.substr(0, slash))) {
            return false;
        }
        text.remove_prefix(slash);
    }
    return consists_of(text, ":@/");
}

}  // namespace ossa::schema
