// Unquoted scalars: the words and numbers of YAML 1.1 as go-yaml v2 takes them.
#include <array>
#include <charconv>
#include <cmath>

#include "base/yaml.hpp"

namespace ossa::yaml {
namespace {

using Kind = Scalar::Kind;

Scalar of_bool(bool value) {
    Scalar scalar;
    scalar.kind = Kind::boolean;
    scalar.boolean = value;
    return scalar;
}

Scalar of_kind(Kind kind) {
    Scalar scalar;
    scalar.kind = kind;
    return scalar;
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
        if (text == word) {
            return true;
        }
    }
    return false;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Words that begin with a letter or "~": lower case, capitalized, or upper case throughout. By length, since most texts
// that come here ("type", "name") are none of them.
Scalar word(std::string_view text) {
    switch (text.size()) {
        case 1:
            if (text[0] == 'y' || text[0] == 'Y' || text[0] == 'n' || text[0] == 'N') {
                return of_bool(text[0] == 'y' || text[0] == 'Y');
            }
            return text[0] == '~' ? of_kind(Kind::null) : Scalar{};
        case 2:
            if (one_of(text, {"on", "On", "ON"})) {
                return of_bool(true);
            }
            return one_of(text, {"no", "No", "NO"}) ? of_bool(false) : Scalar{};
        case 3:
            if (one_of(text, {"yes", "Yes", "YES"})) {
                return of_bool(true);
            }
            return one_of(text, {"off", "Off", "OFF"}) ? of_bool(false) : Scalar{};
        case 4:
            if (one_of(text, {"true", "True", "TRUE"})) {
                return of_bool(true);
            }
            return one_of(text, {"null", "Null", "NULL"}) ? of_kind(Kind::null) : Scalar{};
        case 5: return one_of(text, {"false", "False", "FALSE"}) ? of_bool(false) : Scalar{};
        default: return {};
    }
}

// Go's strconv.ParseInt and ParseUint with base 0, underscores already gone.
Scalar whole_number(std::string_view text) {
    std::string_view digits = text;
    bool negative = false;
    bool has_sign = false;
    if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
        negative = digits[0] == '-';
        has_sign = true;
        digits.remove_prefix(1);
    }
    int base = 10;
    if (digits.size() > 1 && digits[0] == '0') {
        const char c = digits[1];
        if (c == 'x' || c == 'X') {
            base = 16;
        } else if (c == 'o' || c == 'O') {
            base = 8;
        } else if (c == 'b' || c == 'B') {
            base = 2;
        }
        digits.remove_prefix(base == 10 ? 1 : 2);
        base = base == 10 ? 8 : base;
    }
    if (digits.empty() || digits[0] == '-') {
        return {};
    }
    std::uint64_t magnitude = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
        return {};
    }
    constexpr auto int64_max = static_cast<std::uint64_t>(INT64_MAX);
    Scalar scalar;
    if (negative ? magnitude <= int64_max + 1 : magnitude <= int64_max) {
        scalar.kind = Kind::integer;
        scalar.integer = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
    } else if (!has_sign) {
        scalar.kind = Kind::unsigned_integer;
        scalar.unsigned_integer = magnitude;
    }
    return scalar;
}

// [-+]? ( .digits | digits [. digits] ) [ (e|E) [-+]? digits ], and then a double; beyond its range it stays a string.
Scalar decimal(std::string_view text) {
    std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    const std::size_t start = text.starts_with('+') ? 1 : 0;
    const auto digits = [&] {
        const std::size_t from = at;
        while (at < text.size() && is_digit(text[at])) {
            ++at;
        }
        return at - from;
    };
    const std::size_t before = digits();
    std::size_t behind = 0;
    if (at < text.size() && text[at] == '.') {
        ++at;
        behind = digits();
    }
    if (before == 0 && behind == 0) {
        return {};
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) {
            ++at;
        }
        if (digits() == 0) {
            return {};
        }
    }
    if (at != text.size()) {
        return {};
    }
    Scalar scalar;
    const auto [end, error] = std::from_chars(text.data() + start, text.data() + text.size(), scalar.number);
    if (error == std::errc::result_out_of_range) {
        // Too small is 0 with a sign for Go; too large stays a string.
        const std::string copy{text.substr(start)};
        const double value = std::strtod(copy.c_str(), nullptr);
        if (!std::isfinite(value)) {
            return {};
        }
        scalar.number = value;
    }
    scalar.kind = Kind::number;
    return scalar;
}

// Each underscore stands between two digits.
bool underscores_separate_digits(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '_' && (i == 0 || !is_digit(text[i - 1]) || i + 1 == text.size() || !is_digit(text[i + 1]))) {
            return false;
        }
    }
    return true;
}

bool is_not_finite(std::string_view text) {
    if (one_of(text, {".nan", ".NaN", ".NAN"})) {
        return true;
    }
    if (text.starts_with('-') || text.starts_with('+')) {
        text.remove_prefix(1);
    }
    return one_of(text, {".inf", ".Inf", ".INF"});
}

std::string without_underscores(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c != '_') {
            out.push_back(c);
        }
    }
    return out;
}

// YYYY-M-D and what may follow stays a string, and no form of it is a number, so it needs no reading here.
Scalar number(std::string_view text) {
    std::string kept;
    if (text.find('_') != std::string_view::npos) {
        if (text[0] == '.' && !underscores_separate_digits(text)) {
            return {};
        }
        kept = without_underscores(text);
        text = kept;
    }
    if (text.empty()) {
        return {};
    }
    if (text[0] != '.') {
        if (const Scalar whole = whole_number(text); whole.kind != Kind::string) {
            return whole;
        }
    }
    if (const Scalar real = decimal(text); real.kind != Kind::string) {
        return real;
    }
    // go-yaml's own binary reading takes one more sign: 0b-1.
    if (text.starts_with("0b-") || text.starts_with("0b+")) {
        const bool negative = text[2] == '-';
        std::uint64_t magnitude = 0;
        const char* first = text.data() + 3;
        const char* last = text.data() + text.size();
        const auto [end, error] = std::from_chars(first, last, magnitude, 2);
        if (first != last && error == std::errc{} && end == last &&
            magnitude <= static_cast<std::uint64_t>(INT64_MAX)) {
            Scalar scalar;
            scalar.kind = Kind::integer;
            scalar.integer = negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
            return scalar;
        }
    }
    return {};
}

enum class Hint : std::uint8_t { none, word, number };

constexpr std::array<Hint, 256> hints = [] {
    std::array<Hint, 256> table{};
    for (const char c : std::string_view{"yYnNtTfFoO~"}) {
        table[static_cast<unsigned char>(c)] = Hint::word;
    }
    for (const char c : std::string_view{"+-.0123456789"}) {
        table[static_cast<unsigned char>(c)] = Hint::number;
    }
    return table;
}();

}  // namespace

Scalar resolve(std::string_view plain) noexcept {
    if (plain.empty()) {
        return of_kind(Kind::null);
    }
    switch (hints[static_cast<unsigned char>(plain[0])]) {
        case Hint::none: return {};
        case Hint::word: return word(plain);
        case Hint::number: break;
    }
    if (plain.size() <= 5 && is_not_finite(plain)) {
        return of_kind(Kind::not_finite);
    }
    return number(plain);
}

}  // namespace ossa::yaml
