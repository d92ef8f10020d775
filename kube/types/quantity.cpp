#include "kube/types/quantity.hpp"

#include <algorithm>
#include <optional>

namespace ossa::kube {
namespace {

__extension__ using UWide = unsigned __int128;

constexpr std::size_t text_max = 64;
constexpr std::string_view not_a_number = "must start with a number such as 2, 0.5 or 1.5";
constexpr std::string_view bad_suffix =
    "must end in nothing, in n, u, m, k, M, G, T, P, E, or in Ki, Mi, Gi, Ti, Pi, Ei";
constexpr std::string_view bad_exponent = "must have a whole number of at most three digits behind the exponent";
constexpr std::string_view too_large = "must not be beyond 9223372036854775807 (2^63-1)";
constexpr std::string_view too_long = "must be at most 64 characters";

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// What the suffix multiplies with: 10^decimal * 2^binary.
struct Scale {
    int decimal = 0;
    int binary = 0;
};

tl::expected<Scale, std::string_view> parse_scale(std::string_view suffix) noexcept {
    if (suffix.empty()) {
        return Scale{};
    }
    if (suffix.size() == 1) {
        switch (suffix[0]) {
            case 'n': return Scale{-9, 0};
            case 'u': return Scale{-6, 0};
            case 'm': return Scale{-3, 0};
            case 'k': return Scale{3, 0};
            case 'M': return Scale{6, 0};
            case 'G': return Scale{9, 0};
            case 'T': return Scale{12, 0};
            case 'P': return Scale{15, 0};
            case 'E': return Scale{18, 0};
            default: return tl::unexpected(bad_suffix);
        }
    }
    if (suffix.size() == 2 && suffix[1] == 'i') {
        constexpr std::string_view order = "KMGTPE";
        const std::size_t at = order.find(suffix[0]);
        return at == std::string_view::npos ? tl::expected<Scale, std::string_view>(tl::unexpected(bad_suffix))
                                            : Scale{0, 10 * (static_cast<int>(at) + 1)};
    }
    if (suffix[0] != 'e' && suffix[0] != 'E') {
        return tl::unexpected(bad_suffix);
    }
    suffix.remove_prefix(1);
    const bool negative = suffix[0] == '-';
    if (suffix[0] == '-' || suffix[0] == '+') {
        suffix.remove_prefix(1);
    }
    if (suffix.empty()) {
        return tl::unexpected(bad_exponent);
    }
    int exponent = 0;
    for (const char c : suffix) {
        if (!is_digit(c)) {
            return tl::unexpected(bad_suffix);
        }
        exponent = exponent * 10 + (c - '0');
        if (exponent > 999) {
            return tl::unexpected(bad_exponent);
        }
    }
    return Scale{negative ? -exponent : exponent, 0};
}

// The amounts that people write: up to nine digits and the usual suffixes. Nothing for all others.
std::optional<UWide> parse_plain(std::string_view text) noexcept {
    constexpr std::size_t digits_max = 9;
    std::uint64_t value = 0;
    std::size_t i = 0;
    for (; i < text.size() && is_digit(text[i]); ++i) {
        value = value * 10 + static_cast<unsigned>(text[i] - '0');
        if (i == digits_max) {
            return std::nullopt;
        }
    }
    if (i == 0) {
        return std::nullopt;
    }
    constexpr std::uint64_t unit = 1'000'000'000;
    if (i == text.size()) {
        return UWide{value} * unit;
    }
    if (i + 1 == text.size() && text[i] == 'm') {
        return UWide{value} * (unit / 1000);
    }
    if (i + 2 == text.size() && text[i + 1] == 'i') {
        const unsigned shift = text[i] == 'K' ? 10U : text[i] == 'M' ? 20U : text[i] == 'G' ? 30U : 0U;
        return shift == 0 ? std::nullopt : std::optional<UWide>{UWide{value << shift} * unit};
    }
    return std::nullopt;
}

}  // namespace

Quantity Quantity::of(std::int64_t units) noexcept {
    return Quantity{static_cast<Wide>(units) * nano_per_unit};
}

tl::expected<Quantity, std::string_view> Quantity::parse(std::string_view text) noexcept {
    if (const auto plain = parse_plain(text)) {
        return Quantity{static_cast<Wide>(*plain)};
    }
    if (text.size() > text_max) {
        return tl::unexpected(too_long);
    }
    bool negative = false;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
        negative = text[0] == '-';
        text.remove_prefix(1);
    }
    std::size_t end = 0;
    std::size_t point = std::string_view::npos;
    std::size_t digits = 0;
    while (end < text.size() && (is_digit(text[end]) || (text[end] == '.' && point == std::string_view::npos))) {
        if (text[end] == '.') {
            point = end;
        } else {
            ++digits;
        }
        ++end;
    }
    if (digits == 0) {
        return tl::unexpected(not_a_number);
    }
    const auto scale = parse_scale(text.substr(end));
    if (!scale) {
        return tl::unexpected(scale.error());
    }

    // The amount in nano is digits * 10^power * 2^binary. Digits are taken one by one while the next one still
    // counts; the bound in nano is below 2^93, so a digit or factor too many is seen long before 128 bits are full.
    constexpr UWide nano_max = (UWide{1} << 63U) * UWide{nano_per_unit} - UWide{nano_per_unit};
    const std::string_view number = text.substr(0, end);
    const int fraction_digits = point == std::string_view::npos ? 0 : static_cast<int>(end - point - 1);
    int power = 9 + scale->decimal - fraction_digits;

    // At most 63 digits: drop the zeros behind, then those in front cost nothing.
    UWide value = 0;
    bool rest = false;  // something finer than nano was dropped: round away from zero
    int taken = 0;
    const int wanted = static_cast<int>(digits) + std::min(power, 0);  // digits that lie above one nano
    if (scale->binary == 0) {
        for (const char c : number) {
            if (c == '.') {
                continue;
            }
            if (taken++ >= wanted) {
                rest = rest || c != '0';
                continue;
            }
            value = value * 10 + static_cast<unsigned>(c - '0');
            if (value > nano_max) {
                return tl::unexpected(too_large);
            }
        }
        for (; power > 0 && value != 0; --power) {
            value *= 10;
            if (value > nano_max) {
                return tl::unexpected(too_large);
            }
        }
    } else {
        // Whole part and fraction apart: whole * 2^b is a shift; the fraction is at most 62 digits and is brought
        // to nano by long division, one decimal digit at a time from the last to the first.
        UWide whole = 0;
        for (const char c : number.substr(0, std::min(point, number.size()))) {
            whole = whole * 10 + static_cast<unsigned>(c - '0');
            if (whole > nano_max) {
                return tl::unexpected(too_large);
            }
        }
        const auto shift = static_cast<unsigned>(scale->binary);
        if (whole > (nano_max / UWide{nano_per_unit}) >> shift) {
            return tl::unexpected(too_large);
        }
        value = (whole << shift) * UWide{nano_per_unit};
        if (fraction_digits > 0) {
            // fraction = 0.d1d2d3…; unit * fraction = (unit*d1 + (unit*d2 + …)/10)/10. unit = 2^b * 10^9 < 2^90, so
            // ten times it fits. Going from the last digit, a remainder anywhere means that the exact value is
            // larger.
            const UWide unit = (UWide{1} << shift) * UWide{nano_per_unit};
            UWide part = 0;
            for (std::size_t i = number.size(); i-- > point + 1;) {
                const UWide sum = unit * static_cast<unsigned>(number[i] - '0') + part;
                part = sum / 10;
                rest = rest || sum % 10 != 0;
            }
            value += part;
        }
    }
    if (rest) {
        ++value;
    }
    if (value > nano_max) {
        return tl::unexpected(too_large);
    }
    const auto nano = static_cast<Wide>(value);
    return Quantity{negative ? -nano : nano};
}

}  // namespace ossa::kube
