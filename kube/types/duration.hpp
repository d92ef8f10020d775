// A span of time as Go writes it: "1h30m", "300ms", "1.5s", "-2m"; units ns us µs ms s m h, and "0" without one.
// Source: Go's time.ParseDuration. Whole nanoseconds; what is finer is cut off. Exact: no floating point.
#pragma once

#include <chrono>
#include <string_view>
#include <tl/expected.hpp>

namespace ossa::kube {

// The error says what is wrong: "must …". Linear, without allocation.
tl::expected<std::chrono::nanoseconds, std::string_view> parse_duration(std::string_view text) noexcept;

}  // namespace ossa::kube
