#include "net/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <cmath>
#include <memory>
#include <mutex>

namespace ossa::net {
namespace detail {

std::atomic<LogLevel> log_level{LogLevel::info};

}  // namespace detail

namespace {

struct Destination {
    std::mutex mutex;
    LogFormat format = LogFormat::text;
    std::shared_ptr<spdlog::logger> logger;
    std::function<void(LogLevel, std::string_view)> sink;
};

Destination& destination() {
    static Destination* const it = new Destination;  // outlives every static, so that late lines find it
    return *it;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
    switch (level) {
        case LogLevel::debug: return spdlog::level::debug;
        case LogLevel::info: return spdlog::level::info;
        case LogLevel::warn: return spdlog::level::warn;
        case LogLevel::error: return spdlog::level::err;
        case LogLevel::off: return spdlog::level::off;
    }
    return spdlog::level::info;
}

std::shared_ptr<spdlog::logger> make_logger(LogFormat format) {
    auto logger = std::make_shared<spdlog::logger>("ossa", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_level(spdlog::level::trace);
    if (format == LogFormat::json) {
        logger->set_pattern(R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})", spdlog::pattern_time_type::utc);
    } else {
        logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    }
    logger->flush_on(spdlog::level::trace);
    return logger;
}

// Length of the well-formed UTF-8 sequence at `at`, 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(at);
    const std::size_t length = lead < 0x80          ? 1
                               : (lead >> 5U) == 6  ? 2
                               : (lead >> 4U) == 14 ? 3
                               : (lead >> 3U) == 30 ? 4
                                                    : 0;
    if (length == 0 || at + length > text.size()) {
        return 0;
    }
    std::uint32_t code = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0U) != 0x80U) {
            return 0;
        }
        code = (code << 6U) | (byte(at + i) & 0x3FU);
    }
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool well_formed = code >= least[length] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    return well_formed ? length : 0;
}

void append_hex(std::string& out, unsigned char byte) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
}

// C1 control characters (U+0080 to U+009F) are escape sequences to some terminals.
bool is_c1(std::string_view text, std::size_t at) {
    return text[at] == '\xC2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

void append_escaped(std::string& out, LogFormat format, std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
            ++at;
        } else if (c == '\n') {
            out += "\\n";
            ++at;
        } else if (byte < 0x20 || byte == 0x7F) {
            out += format == LogFormat::json ? "\\u00" : "\\x";
            append_hex(out, byte);
            ++at;
        } else if (byte < 0x80) {
            out += c;
            ++at;
        } else if (is_c1(text, at)) {
            out += "\\u00";
            append_hex(out, static_cast<unsigned char>(text[at + 1]));
            at += 2;
        } else if (const std::size_t length = utf8_length(text, at); length != 0) {
            out.append(text, at, length);
            at += length;
        } else {
            out += format == LogFormat::json ? "\\\\x" : "\\x";
            append_hex(out, byte);
            ++at;
        }
    }
}

bool plain(std::string_view text) {
    if (text.empty()) {
        return false;
    }
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte <= 0x20 || byte >= 0x7F || c == '"' || c == '\\' || c == '=') {
            return false;
        }
    }
    return true;
}

template <class T>
void append_number(std::string& out, T value) {
    char digits[40];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
    out.append(digits, end);
}

void append_value(std::string& out, LogFormat format, const LogField& field) {
    std::visit(
        [&](const auto& value) {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::string_view>) {
                if (format == LogFormat::text && plain(value)) {
                    out += value;
                } else {
                    out += '"';
                    append_escaped(out, format, value);
                    out += '"';
                }
            } else if constexpr (std::is_same_v<T, bool>) {
                out += value ? "true" : "false";
            } else if constexpr (std::is_same_v<T, double>) {
                if (std::isfinite(value)) {
                    append_number(out, value);
                } else {
                    out += "null";
                }
            } else {
                append_number(out, value);
            }
        },
        field.value());
}

}  // namespace

void detail::append_fields(std::string& out, LogFormat format, std::string_view message,
                           std::initializer_list<LogField> fields) {
    if (format == LogFormat::json) {
        out += "\"msg\":\"";
        append_escaped(out, format, message);
        out += '"';
        for (const LogField& field : fields) {
            out += ",\"";
            out += field.key();
            out += "\":";
            append_value(out, format, field);
        }
        return;
    }
    append_escaped(out, format, message);
    for (const LogField& field : fields) {
        out += ' ';
        out += field.key();
        out += '=';
        append_value(out, format, field);
    }
}

Result<LogLevel> parse_log_level(std::string_view text) {
    if (text == "debug")
        return LogLevel::debug;
    if (text == "info")
        return LogLevel::info;
    if (text == "warn")
        return LogLevel::warn;
    if (text == "error")
        return LogLevel::error;
    if (text == "off")
        return LogLevel::off;
    return failure(ErrorCode::invalid, "log level must be debug, info, warn, error or off");
}

Result<LogFormat> parse_log_format(std::string_view text) {
    if (text == "text")
        return LogFormat::text;
    if (text == "json")
        return LogFormat::json;
    return failure(ErrorCode::invalid, "log format must be text or json");
}

void setup_log(LogFormat format, LogLevel level) {
    Destination& to = destination();
    const std::lock_guard lock{to.mutex};
    to.format = format;
    to.logger = make_logger(format);
    set_log_level(level);
}

void set_log_level(LogLevel level) noexcept {
    detail::log_level.store(level, std::memory_order_relaxed);
}

void set_log_sink(std::function<void(LogLevel, std::string_view)> sink) {
    Destination& to = destination();
    const std::lock_guard lock{to.mutex};
    to.sink = std::move(sink);
}

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) noexcept {
    if (!log_enabled(level)) {
        return;
    }
    try {
        Destination& to = destination();
        const std::lock_guard lock{to.mutex};
        std::string line;
        detail::append_fields(line, to.format, message, fields);
        if (to.sink) {
            to.sink(level, line);
            return;
        }
        if (!to.logger) {
            to.logger = make_logger(to.format);
        }
        to.logger->log(spdlog_level(level), "{}", line);
    } catch (...) {
        // A line that cannot be written must not become a second failure.
    }
}

}  // namespace ossa::net
