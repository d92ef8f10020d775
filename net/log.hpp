// log: one line per outcome, a message and key=value fields, as text or as JSON, on stderr.
// Values are escaped: control characters, quotes, backslashes and bytes that are not UTF-8 cannot forge a line or a
// field or reach a terminal. A line below the level costs one atomic load and builds nothing (OSSA_LOG). Any thread.
// Not promised: that the lines of two threads are in the order of their events.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/result.hpp"

namespace ossa::net {

enum class LogLevel : std::uint8_t { debug, info, warn, error, off };
enum class LogFormat : std::uint8_t { text, json };

Result<LogLevel> parse_log_level(std::string_view text);
Result<LogFormat> parse_log_format(std::string_view text);

// One key=value. Keys are ours and are not escaped; string values are viewed, not copied, and live as long as the
// statement.
class LogField {
  public:
    LogField(std::string_view key, std::string_view value) : key_(key), value_(value) {}
    LogField(std::string_view key, const std::string& value) : key_(key), value_(std::string_view{value}) {}
    LogField(std::string_view key, const char* value) : key_(key), value_(std::string_view{value}) {}
    LogField(std::string_view key, bool value) : key_(key), value_(value) {}
    LogField(std::string_view key, double value) : key_(key), value_(value) {}
    template <class T>
        requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
    LogField(std::string_view key, T value) : key_(key) {
        if constexpr (std::is_signed_v<T>) {
            value_ = static_cast<std::int64_t>(value);
        } else {
            value_ = static_cast<std::uint64_t>(value);
        }
    }

    std::string_view key() const noexcept { return key_; }
    const auto& value() const noexcept { return value_; }

  private:
    std::string_view key_;
    std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value_;
};

// Sets where and how; call it before threads start. Without it: text, info.
void setup_log(LogFormat format, LogLevel level);
void set_log_level(LogLevel level) noexcept;
// For tests: lines go to `sink`, without time and newline, instead of stderr. An empty function brings stderr back.
void set_log_sink(std::function<void(LogLevel, std::string_view line)> sink);

namespace detail {
extern std::atomic<LogLevel> log_level;
void append_fields(std::string& out, LogFormat format, std::string_view message,
                   std::initializer_list<LogField> fields);
}  // namespace detail

inline bool log_enabled(LogLevel level) noexcept {
    return level >= detail::log_level.load(std::memory_order_relaxed);
}
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {}) noexcept;

}  // namespace ossa::net

// OSSA_LOG(info, "connection closed", {"peer", peer}, {"bytes", n}): the fields are evaluated only when the level is
// on.
#define OSSA_LOG(level, message, ...)                                               \
    do {                                                                            \
        if (::ossa::net::log_enabled(::ossa::net::LogLevel::level)) [[unlikely]] {  \
            ::ossa::net::log(::ossa::net::LogLevel::level, message, {__VA_ARGS__}); \
        }                                                                           \
    } while (false)
