#include "kube/types/semver.hpp"

#include <algorithm>

namespace ossa::kube {
namespace {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr bool is_identifier_char(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

bool is_numeric(std::string_view text) noexcept {
    for (const char c : text) {
        if (!is_digit(c)) {
            return false;
        }
    }
    return !text.empty();
}

enum class LeadingZeros : bool { refused, allowed };

// Identifiers joined by dots. Each is looked at once for its characters and once for its digits.
bool are_identifiers(std::string_view text, LeadingZeros zeros) noexcept {
    while (true) {
        const std::size_t dot = text.find('.');
        const std::string_view one = text.substr(0, dot);
        if (one.empty()) {
            return false;
        }
        for (const char c : one) {
            if (!is_identifier_char(c)) {
                return false;
            }
        }
        if (zeros == LeadingZeros::refused && one.size() > 1 && one[0] == '0' && is_numeric(one)) {
            return false;
        }
        if (dot == std::string_view::npos) {
            return true;
        }
        text.remove_prefix(dot + 1);
    }
}

std::weak_ordering compare_numbers(std::string_view a, std::string_view b) noexcept {
    if (a.size() != b.size()) {
        return a.size() <=> b.size();
    }
    return a.compare(b) <=> 0;
}

std::weak_ordering compare_identifiers(std::string_view a, std::string_view b) noexcept {
    const bool a_numeric = is_numeric(a);
    const bool b_numeric = is_numeric(b);
    if (a_numeric != b_numeric) {
        return a_numeric ? std::weak_ordering::less : std::weak_ordering::greater;
    }
    return a_numeric ? compare_numbers(a, b) : std::weak_ordering(a.compare(b) <=> 0);
}

// Takes the text up to the dot (or all of it) off the front.
std::string_view take(std::string_view& text) noexcept {
    const std::size_t dot = text.find('.');
    const std::string_view one = text.substr(0, dot);
    text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
    return one;
}

// One number off the front, up to `end` (which is taken off as well; '\0' stands for the end of the text).
std::optional<std::string_view> take_number(std::string_view& text, char end) noexcept {
    std::size_t n = 0;
    while (n < text.size() && is_digit(text[n])) {
        ++n;
    }
    const bool ended = end == '\0' ? n == text.size() : n < text.size() && text[n] == end;
    if (n == 0 || (n > 1 && text[0] == '0') || !ended) {
        return std::nullopt;
    }
    const std::string_view number = text.substr(0, n);
    text.remove_prefix(std::min(n + 1, text.size()));
    return number;
}

// Three numbers and no more, as most versions are.
std::optional<Semver> parse_plain(std::string_view text) noexcept {
    const auto major = take_number(text, '.');
    const auto minor = major ? take_number(text, '.') : std::nullopt;
    const auto patch = minor ? take_number(text, '\0') : std::nullopt;
    return patch ? std::optional{Semver{*major, *minor, *patch, {}, {}}} : std::nullopt;
}

}  // namespace

std::optional<Semver> Semver::parse(std::string_view text) noexcept {
    if (const auto plain = parse_plain(text)) {
        return plain;
    }
    Semver out;
    if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
        out.build = text.substr(plus + 1);
        if (!are_identifiers(out.build, LeadingZeros::allowed)) {
            return std::nullopt;
        }
        text = text.substr(0, plus);
    }
    if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
        out.prerelease = text.substr(dash + 1);
        if (!are_identifiers(out.prerelease, LeadingZeros::refused)) {
            return std::nullopt;
        }
        text = text.substr(0, dash);
    }
    const auto numbers = parse_plain(text);
    if (!numbers) {
        return std::nullopt;
    }
    out.major = numbers->major;
    out.minor = numbers->minor;
    out.patch = numbers->patch;
    return out;
}

std::weak_ordering precedence(const Semver& a, const Semver& b) noexcept {
    for (const auto part : {&Semver::major, &Semver::minor, &Semver::patch}) {
        if (const auto order = compare_numbers(a.*part, b.*part); order != 0) {
            return order;
        }
    }
    if (a.prerelease.empty() || b.prerelease.empty()) {
        return b.prerelease.size() <=> a.prerelease.size();  // the one without a prerelease is the later
    }
    std::string_view rest_a = a.prerelease;
    std::string_view rest_b = b.prerelease;
    while (!rest_a.empty() && !rest_b.empty()) {
        const std::string_view one_a = take(rest_a);
        const std::string_view one_b = take(rest_b);
        if (const auto order = compare_identifiers(one_a, one_b); order != 0) {
            return order;
        }
    }
    return rest_a.size() <=> rest_b.size();  // more identifiers: later
}

}  // namespace ossa::kube
