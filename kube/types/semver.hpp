// Semver: a version of Semantic Versioning 2.0.0, split but not copied.
// Numbers may be of any length; nothing is converted, so nothing overflows. Linear, without allocation.
#pragma once

#include <compare>
#include <optional>
#include <string_view>

namespace ossa::kube {

// Views into the parsed text, which must outlive it.
struct Semver {
    std::string_view major;
    std::string_view minor;
    std::string_view patch;
    std::string_view prerelease;  // without '-', "" when there is none
    std::string_view build;       // without '+', "" when there is none

    // Strict: three numbers without leading zeros, no "v" in front.
    static std::optional<Semver> parse(std::string_view text) noexcept;
};

// Order of precedence (clause 11); build metadata does not count, so this is weak.
std::weak_ordering precedence(const Semver& a, const Semver& b) noexcept;

}  // namespace ossa::kube
