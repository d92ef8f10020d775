// Quantity: an amount as Kubernetes writes it ("500m", "1.5Gi", "2e3"), kept exactly.
//
// Grammar (apimachinery, api/resource): sign? digits with at most one point, then one of
//   n u m k M G T P E | Ki Mi Gi Ti Pi Ei | e/E sign? digits | nothing.
// Kept as a whole number of nano units in 128 bits; what is finer is rounded away from zero, as Kubernetes does.
// Limits: 64 significant characters of text, and a magnitude of at most 2^63-1 units. Kubernetes silently lowers larger
// amounts to that bound; here they are refused, so that a typing error is told and two amounts never compare as equal
// only because both were cut.
// Neither allocates nor recurses; a text beyond the limit is refused by its length.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <tl/expected.hpp>

namespace ossa::kube {

class Quantity {
  public:
    Quantity() = default;

    // The error says what is wrong with the text, without repeating it: "has the unknown suffix …" is left to the
    // caller.
    static tl::expected<Quantity, std::string_view> parse(std::string_view text) noexcept;
    static Quantity of(std::int64_t units) noexcept;

    // -1, 0 or 1.
    int sign() const noexcept { return nano_ < 0 ? -1 : (nano_ > 0 ? 1 : 0); }
    // "512m" bytes of memory: legal, and never meant.
    bool has_fraction() const noexcept { return nano_ % nano_per_unit != 0; }
    // "1500m" is 2; a whole amount is itself.
    std::int64_t units_rounded_up() const noexcept {
        return static_cast<std::int64_t>(nano_ / nano_per_unit + (nano_ % nano_per_unit > 0 ? 1 : 0));
    }

    friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) noexcept {
        return a.nano_ < b.nano_   ? std::strong_ordering::less
               : a.nano_ > b.nano_ ? std::strong_ordering::greater
                                   : std::strong_ordering::equal;
    }
    friend bool operator==(const Quantity& a, const Quantity& b) noexcept { return a.nano_ == b.nano_; }

  private:
    __extension__ using Wide = __int128;
    static constexpr std::int64_t nano_per_unit = 1'000'000'000;
    explicit Quantity(Wide nano) : nano_(nano) {}

    Wide nano_ = 0;
};

}  // namespace ossa::kube
