// Names as Kubernetes allows them. Each check gives nothing when the text is good, else what is allowed, in words that
// stand behind a field's name: "must …". Linear, without allocation; a text is first refused by its length.
// Source: apimachinery util/validation (RFC 1035 and RFC 1123 as Kubernetes reads them).
#pragma once

#include <optional>
#include <string_view>

namespace ossa::kube {

// Why not, or nothing.
using NameProblem = std::optional<std::string_view>;

inline constexpr std::size_t dns_label_max = 63;
inline constexpr std::size_t dns_subdomain_max = 253;

// a-z, 0-9 and '-', starting with a letter and ending with a letter or digit. Length is the caller's: a name that gets
// suffixes has less room.
NameProblem dns1035_label(std::string_view text, std::size_t length_max = dns_label_max) noexcept;
// As above, and it may start with a digit.
NameProblem dns1123_label(std::string_view text, std::size_t length_max = dns_label_max) noexcept;
// Labels joined by '.'; single labels have no bound of their own here, as in Kubernetes.
NameProblem dns1123_subdomain(std::string_view text, std::size_t length_max = dns_subdomain_max) noexcept;
// What a generateName may be: a label that may still end in '-'.
NameProblem dns1035_prefix(std::string_view text, std::size_t length_max) noexcept;

}  // namespace ossa::kube
