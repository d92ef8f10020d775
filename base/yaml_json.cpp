// A JSON text as a tree: for the places of its values, for streams of several values, and to tell JSON from YAML in
// braces.
#include <cstddef>

#include "base/yaml_tree.hpp"

namespace ossa::yaml {
namespace {

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

void append_utf8(char*& to, std::uint32_t c) {
    const auto put = [&](std::uint32_t byte) { *to++ = static_cast<char>(byte); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0U | (c >> 6U));
        put(0x80U | (c & 0x3FU));
    } else if (c < 0x10000) {
        put(0xE0U | (c >> 12U));
        put(0x80U | ((c >> 6U) & 0x3FU));
        put(0x80U | (c & 0x3FU));
    } else {
        put(0xF0U | (c >> 18U));
        put(0x80U | ((c >> 12U) & 0x3FU));
        put(0x80U | ((c >> 6U) & 0x3FU));
        put(0x80U | (c & 0x3FU));
    }
}

class JsonScanner {
  public:
    JsonScanner(std::string_view source, std::size_t at, std::uint32_t first_line, unsigned depth_max, Tree* tree)
        : source_(source), at_(at), line_(first_line), depth_max_(depth_max), tree_(tree) {
        const std::size_t newline = at == 0 ? std::string_view::npos : source.rfind('\n', at - 1);
        line_start_ = newline == std::string_view::npos ? 0 : newline + 1;
        counted_to_ = line_start_;
    }

    std::size_t at() const { return at_; }

    std::optional<Problem> run() {
        // One character per open container; a loop instead of recursion.
        std::string open;
        space();
        while (true) {
            if (auto problem = value_start(open)) {
                return problem;
            }
            if (just_opened_) {
                just_opened_ = false;
                if (!closes(open)) {
                    if (open.back() == '{') {
                        if (auto problem = name()) {
                            return problem;
                        }
                    }
                    continue;
                }
            }
            // A value is complete: close what closes, or go on behind a comma.
            while (!open.empty()) {
                space();
                if (closes(open)) {
                    continue;
                }
                if (!take(',')) {
                    return syntax(std::string{"expected , or "} + (open.back() == '{' ? "}" : "]"));
                }
                space();
                if (open.back() == '{') {
                    if (auto problem = name()) {
                        return problem;
                    }
                }
                break;
            }
            if (open.empty()) {
                return {};
            }
        }
    }

  private:
    char peek() const { return at_ < source_.size() ? source_[at_] : '\0'; }
    bool take(char c) {
        if (at_ < source_.size() && source_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }
    // Counts on from where it stopped: a JSON text may be one line of megabytes.
    std::uint32_t column() {
        if (counted_to_ < line_start_ || counted_to_ > at_) {
            counted_to_ = line_start_;
            counted_ = 0;
        }
        counted_ += code_points(source_.substr(counted_to_, at_ - counted_to_));
        counted_to_ = at_;
        return counted_ + 1;
    }
    Problem syntax(std::string message) {
        return {"yaml/syntax", {line_, column(), 1}, "not JSON: " + std::move(message), ""};
    }
    void space() {
        while (at_ < source_.size() && is_space(source_[at_])) {
            if (source_[at_] == '\n') {
                ++line_;
                line_start_ = at_ + 1;
                counted_to_ = line_start_;
                counted_ = 0;
            }
            ++at_;
        }
    }
    bool closes(std::string& open) {
        space();
        if (!take(open.back() == '{' ? '}' : ']')) {
            return false;
        }
        open.pop_back();
        if (tree_ != nullptr) {
            tree_->end();
        }
        return true;
    }
    std::optional<Problem> name() {
        if (peek() != '"') {
            return syntax("expected a name in double quotes");
        }
        if (auto problem = string()) {
            return problem;
        }
        space();
        if (!take(':')) {
            return syntax("expected :");
        }
        space();
        return {};
    }
    std::optional<Problem> value_start(std::string& open) {
        const char c = peek();
        if (c == '{' || c == '[') {
            if (open.size() >= depth_max_) {
                return Problem{"yaml/depth",
                               {line_, column(), 1},
                               "nested deeper than " + std::to_string(depth_max_) + " levels",
                               ""};
            }
            if (tree_ != nullptr) {
                tree_->begin(c == '{' ? NodeKind::mapping : NodeKind::sequence, line_, column());
            }
            open.push_back(c);
            ++at_;
            just_opened_ = true;
            space();
            return {};
        }
        return c == '"' ? string() : word();
    }
    std::optional<Problem> word() {
        const std::size_t start = at_;
        const std::uint32_t start_column = tree_ != nullptr ? column() : 0;
        if (const std::string_view rest = source_.substr(at_); rest.starts_with("true") || rest.starts_with("null")) {
            at_ += 4;
        } else if (rest.starts_with("false")) {
            at_ += 5;
        } else {
            take('-');
            const std::size_t whole = at_;
            while (is_digit(peek())) {
                ++at_;
            }
            if (at_ == whole || (source_[whole] == '0' && at_ - whole > 1)) {
                return syntax(at_ == whole ? "expected a value" : "a number must not begin with 0");
            }
            if (take('.')) {
                if (!is_digit(peek())) {
                    return syntax("expected a digit");
                }
                while (is_digit(peek())) {
                    ++at_;
                }
            }
            if (take('e') || take('E')) {
                if (!take('+')) {
                    take('-');
                }
                if (!is_digit(peek())) {
                    return syntax("expected a digit");
                }
                while (is_digit(peek())) {
                    ++at_;
                }
            }
        }
        if (tree_ != nullptr) {
            const std::string_view text = source_.substr(start, at_ - start);
            tree_->scalar(text, Style::plain, line_, start_column, static_cast<std::uint32_t>(text.size()));
        }
        return {};
    }
    std::optional<std::uint32_t> hex4() {
        std::uint32_t value = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            const char c = peek();
            std::uint32_t digit = 0;
            if (is_digit(c)) {
                digit = static_cast<std::uint32_t>(c - '0');
            } else if (c >= 'a' && c <= 'f') {
                digit = static_cast<std::uint32_t>(c - 'a') + 10;
            } else if (c >= 'A' && c <= 'F') {
                digit = static_cast<std::uint32_t>(c - 'A') + 10;
            } else {
                return {};
            }
            value = value * 16 + digit;
        }
        return value;
    }
    std::optional<Problem> string() {
        const std::uint32_t start_column = tree_ != nullptr ? column() : 0;
        const std::size_t start = ++at_;
        bool escapes = false;
        while (at_ < source_.size() && source_[at_] != '"') {
            if (static_cast<unsigned char>(source_[at_]) < 0x20) {
                return syntax("a control character within a string");
            }
            if (source_[at_] == '\\') {
                escapes = true;
                ++at_;
                if (peek() == 'u') {
                    ++at_;
                    if (!hex4()) {
                        return syntax("expected four hexadecimal digits");
                    }
                    continue;
                }
                if (std::string_view{"\"\\/bfnrt"}.find(peek()) == std::string_view::npos || at_ >= source_.size()) {
                    return syntax("unknown escape");
                }
            }
            ++at_;
        }
        if (at_ >= source_.size()) {
            return syntax("a string without its closing quote");
        }
        const std::string_view raw = source_.substr(start, at_ - start);
        ++at_;
        if (tree_ != nullptr) {
            tree_->scalar(escapes ? unescape(raw) : raw, Style::quoted, line_, start_column, code_points(raw) + 2);
        }
        return {};
    }
    // `raw` was checked above. A lone surrogate becomes U+FFFD here; the value itself comes from json::Document.
    std::string_view unescape(std::string_view raw) {
        char* const begin = tree_->arena.take(raw.size());
        char* to = begin;
        const std::size_t back = at_;
        for (std::size_t i = 0; i < raw.size(); ++i) {
            if (raw[i] != '\\') {
                *to++ = raw[i];
                continue;
            }
            const char c = raw[++i];
            constexpr std::string_view from = "bfnrt";
            constexpr std::string_view into = "\b\f\n\r\t";
            if (c != 'u') {
                const std::size_t k = from.find(c);
                *to++ = k == std::string_view::npos ? c : into[k];
                continue;
            }
            const auto code_at = [&](std::size_t k) {
                at_ = static_cast<std::size_t>(raw.data() - source_.data()) + k;
                return hex4().value_or(0xFFFD);
            };
            std::uint32_t code = code_at(i + 1);
            i += 4;
            if (code >= 0xD800 && code < 0xDC00 && raw.substr(i + 1).starts_with("\\u")) {
                const std::uint32_t low = code_at(i + 3);
                if (low >= 0xDC00 && low < 0xE000) {
                    code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
                    i += 6;
                }
            }
            append_utf8(to, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
        }
        at_ = back;
        return {begin, static_cast<std::size_t>(to - begin)};
    }

    std::string_view source_;
    std::size_t at_;
    std::size_t line_start_ = 0;
    std::size_t counted_to_ = 0;
    std::uint32_t counted_ = 0;
    std::uint32_t line_;
    unsigned depth_max_;
    Tree* tree_;
    bool just_opened_ = false;
};

}  // namespace

std::optional<Problem> scan_json(std::string_view source, std::size_t& at, std::uint32_t first_line, unsigned depth_max,
                                 Tree* tree) {
    JsonScanner scanner(source, at, first_line, depth_max, tree);
    auto problem = scanner.run();
    at = scanner.at();
    return problem;
}

}  // namespace ossa::yaml
