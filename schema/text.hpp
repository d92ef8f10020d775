// Guesses what a person meant: the known name nearest to a mistyped one, the allowed values nearest to a refused one.
// Only ever a hint; called when something is already wrong, so it may allocate, but its time is bounded: texts beyond
// guess_bytes_max are not guessed at.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ossa::schema {

inline constexpr std::size_t guess_bytes_max = 64;

// Typing steps from a to b (insert, drop, replace, swap two neighbours), or limit + 1 when there are more than `limit`.
// Both texts at most guess_bytes_max bytes. Each pair of letters is swapped at most once (optimal string alignment).
unsigned edit_distance(std::string_view a, std::string_view b, unsigned limit) noexcept;

// The known name that is equal but for case, dashes and underscores, else the one at the least edit distance of at most
// a third of its length; the first one when several are as near. Nothing when none is near.
std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> known);

// The allowed values (three at most, in the given order) that a refused value probably stands for: equal but for case
// and dashes; else known under another word ("mutual-tls", "kubernetes"); else those that begin with it ("fedramp");
// else the nearest by typing.
std::vector<std::string_view> similar_values(std::string_view value, std::span<const std::string_view> allowed);

// `did you mean "mtls"?`, or "" when nothing is similar.
std::string did_you_mean(std::string_view value, std::span<const std::string_view> allowed);

}  // namespace ossa::schema
