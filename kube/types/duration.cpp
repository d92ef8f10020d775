#include "kube/types/duration.hpp"

#include <cstdint>

namespace ossa::kube {
namespace {

constexpr std::string_view no_number = "must be numbers with units, such as 30s, 5m or 1h30m";
constexpr std::string_view no_unit = "must have a unit behind each number: ns, us, ms, s, m or h, as in 30s";
constexpr std::string_view too_large = "must be below 292 years (2^63 nanoseconds)";

__extension__ using UWide = unsigned __int128;

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

struct Unit {
    std::string_view name;
    std::uint64_t nanoseconds;
};
// Longer names first where one starts with another: "ms" before "m".
constexpr Unit units[] = {
    {"ns", 1},
    {"us", 1'000},
    {"\xC2\xB5s", 1'000},  // U+00B5, micro sign
    {"\xCE\xBCs", 1'000},  // U+03BC, Greek mu
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
};

}  // namespace

tl::expected<std::chrono::nanoseconds, std::string_view> parse_duration(std::string_view text) noexcept {
    bool negative = false;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
        negative = text[0] == '-';
        text.remove_prefix(1);
    }
    if (text == "0") {
        return std::chrono::nanoseconds{0};
    }
    if (text.empty()) {
        return tl::unexpected(no_number);
    }
    constexpr auto limit = static_cast<std::uint64_t>(INT64_MAX);
    constexpr std::uint64_t fraction_scale_max = 1'000'000'000'000'000;  // 15 digits: finer than 1 ns of an hour
    std::uint64_t total = 0;
    while (!text.empty()) {
        std::size_t i = 0;
        std::uint64_t whole = 0;
        for (; i < text.size() && is_digit(text[i]); ++i) {
            if (whole > limit / 10) {
                return tl::unexpected(too_large);
            }
            whole = whole * 10 + static_cast<unsigned>(text[i] - '0');
        }
        std::size_t digits = i;
        std::uint64_t fraction = 0;
        std::uint64_t scale = 1;
        if (i < text.size() && text[i] == '.') {
            ++i;
            for (; i < text.size() && is_digit(text[i]); ++i, ++digits) {
                if (scale < fraction_scale_max) {
                    fraction = fraction * 10 + static_cast<unsigned>(text[i] - '0');
                    scale *= 10;
                }
            }
        }
        if (digits == 0) {
            return tl::unexpected(no_number);
        }
        text.remove_prefix(i);
        const Unit* unit = nullptr;
        for (const Unit& one : units) {
            if (text.starts_with(one.name)) {
                unit = &one;
                break;
            }
        }
        if (unit == nullptr) {
            return tl::unexpected(no_unit);
        }
        text.remove_prefix(unit->name.size());
        const UWide part = UWide{whole} * unit->nanoseconds + UWide{fraction} * unit->nanoseconds / scale;
        if (part > limit - total) {
            return tl::unexpected(too_large);
        }
        total += static_cast<std::uint64_t>(part);
    }
    const auto signed_total = static_cast<std::int64_t>(total);
    return std::chrono::nanoseconds{negative ? -signed_total : signed_total};
}

}  // namespace ossa::kube
