// Error: what went wrong, said once for the program (code) and once for a person (message).
// The code tells the caller what to do next; the message names the thing it happened to and grows outwards with `with`.
// A finding about a user's object is not an Error (see kube/types/finding.hpp), and neither is a bug (see
// base/bug.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ossa {

enum class ErrorCode : std::uint8_t {
    invalid,
    not_found,
    conflict,
    already_exists,
    gone,
    forbidden,
    unauthenticated,
    throttled,
    too_large,
    deadline,
    unavailable,
    cancelled,
    internal,
};

std::string_view to_string(ErrorCode code) noexcept;

class Error {
  public:
    Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

    // Puts the context in front: Error{not_found, "no such file"}.with("read /tls/tls.crt").
    Error&& with(std::string_view context) &&;
    Error&& after(std::chrono::milliseconds retry_after) &&;

    ErrorCode code() const noexcept { return code_; }
    const std::string& message() const noexcept { return message_; }
    std::optional<std::chrono::milliseconds> retry_after() const noexcept { return retry_after_; }
    // True when the same call may succeed later without anyone changing anything.
    bool retryable() const noexcept;

  private:
    ErrorCode code_;
    std::string message_;
    std::optional<std::chrono::milliseconds> retry_after_;
};

}  // namespace ossa
