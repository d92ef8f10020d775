// The quick scanner: block mappings and sequences, one-line plain and quoted scalars, literal and folded blocks,
// one-line flow collections. That is what manifests are made of; for anything else, and for anything that may be wrong,
// it gives up and libyaml reads the part from the start, so that there is one judge of what is YAML and one source of
// messages. A test compares the two trees over the corpus and over mutations of it.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/yaml_tree.hpp"

namespace ossa::yaml {
namespace {

// What a plain scalar may begin with here: never an indicator.
constexpr std::array<bool, 256> starts_plain = [] {
    std::array<bool, 256> table{};
    for (int c = 0x21; c < 256; ++c) {
        table[static_cast<std::size_t>(c)] = c != 0x7F;
    }
    for (const char c : std::string_view{"-?:,[]{}#&*!|>'\"%@`"}) {
        table[static_cast<unsigned char>(c)] = false;
    }
    return table;
}();

// Bytes that need no second look, outside and inside of flow collections.
constexpr std::array<bool, 256> ends_flow_plain = [] {
    std::array<bool, 256> table{};
    for (const char c : std::string_view{",[]{}:#?\n"}) {
        table[static_cast<unsigned char>(c)] = true;
    }
    return table;
}();

bool is_blank_char(char c) {
    return c == ' ';
}

class QuickScanner {
  public:
    QuickScanner(Tree& tree, const Limits& limits)
        : tree_(tree), limits_(limits), at_(tree.source.data()), end_(at_ + tree.source.size()) {}

    bool run() {
        if (at_ == end_ || end_[-1] != '\n' || !check_bytes()) {
            return false;
        }
        line_ = tree_.first_line;
        while (at_ < end_) {
            take_line();
            const char* s = begin_;
            while (s < stop_ && is_blank_char(*s)) {
                ++s;
            }
            if (s == stop_ || *s == '#') {
                ++line_;
                continue;
            }
            if (s == begin_ && (*s == '%' || starts_with(s, "---") || starts_with(s, "..."))) {
                return false;
            }
            if (!content(s) || tree_.nodes.size() > limits_.values_max) {
                return false;
            }
            ++line_;
        }
        while (!levels_.empty()) {
            close_level();
        }
        return true;
    }

  private:
    struct Level {
        std::uint32_t indent;
        bool sequence;
        bool pending;  // a name or dash whose value has not come yet
        std::uint32_t pending_line;
        std::uint32_t pending_column;
    };

    // ASCII text without tabs and control characters, or UTF-8 that holds no character that YAML treats apart.
    bool check_bytes() {
        const auto* c = reinterpret_cast<const unsigned char*>(at_);
        const auto* const last = reinterpret_cast<const unsigned char*>(end_);
        constexpr std::ptrdiff_t block = 32;  // a fixed count, which the compiler turns into a few vector operations
        while (last - c >= block) {
            unsigned char odd = 0;
            for (std::ptrdiff_t i = 0; i < block; ++i) {
                odd |= static_cast<unsigned char>(static_cast<unsigned char>((c[i] < 0x20) & (c[i] != '\n')) |
                                                  (c[i] >= 0x7F));
            }
            if (odd == 0) {
                c += block;
                continue;
            }
            for (const auto* const stop = c + block; c < stop;) {
                if (!check_byte(c, last)) {
                    return false;
                }
            }
        }
        while (c < last) {
            if (!check_byte(c, last)) {
                return false;
            }
        }
        return true;
    }

    // One character; moves c behind it.
    bool check_byte(const unsigned char*& c, const unsigned char* last) {
        if (*c < 0x7F) {
            if (*c < 0x20 && *c != '\n' && (*c != '\r' || c + 1 == last || c[1] != '\n')) {
                return false;
            }
            ++c;
            return true;
        }
        ascii_ = false;
        const auto more = [&](int i) { return c + i < last && (c[i] & 0xC0U) == 0x80U; };
        if (*c >= 0xC2 && *c < 0xE0 && more(1)) {
            if (*c == 0xC2 && c[1] < 0xA0) {
                return false;  // C1 controls and NEL
            }
            c += 2;
        } else if ((*c & 0xF0U) == 0xE0U && more(1) && more(2)) {
            const unsigned code = ((*c & 0x0FU) << 12U) | ((c[1] & 0x3FU) << 6U) | (c[2] & 0x3FU);
            if (code < 0x800 || (code >= 0xD800 && code < 0xE000) || code == 0x2028 || code == 0x2029 ||
                code == 0xFEFF || code >= 0xFFFE) {
                return false;
            }
            c += 3;
        } else if (*c >= 0xF0 && *c < 0xF5 && more(1) && more(2) && more(3)) {
            if ((*c == 0xF0 && c[1] < 0x90) || (*c == 0xF4 && c[1] >= 0x90)) {
                return false;
            }
            c += 4;
        } else {
            return false;
        }
        return true;
    }

    void take_line() {
        begin_ = at_;
        stop_ = static_cast<const char*>(std::memchr(at_, '\n', static_cast<std::size_t>(end_ - at_)));
        at_ = stop_ + 1;
        if (stop_ > begin_ && stop_[-1] == '\r') {
            --stop_;
        }
    }
    bool starts_with(const char* s, std::string_view text) const {
        return std::string_view{s, static_cast<std::size_t>(stop_ - s)}.starts_with(text);
    }
    bool is_dash(const char* s) const { return *s == '-' && (s + 1 == stop_ || s[1] == ' '); }
    std::uint32_t offset(const char* s) const { return static_cast<std::uint32_t>(s - begin_); }
    std::uint32_t column(const char* s) const {
        return (ascii_ ? offset(s) : code_points({begin_, static_cast<std::size_t>(s - begin_)})) + 1;
    }
    std::uint32_t width(const char* from, const char* to) const {
        const auto bytes = static_cast<std::size_t>(to - from);
        return ascii_ ? static_cast<std::uint32_t>(bytes) : code_points({from, bytes});
    }

    // The rest of the line from s holds nothing but blanks and a comment.
    bool is_end(const char* s) const {
        if (s < stop_ && *s != ' ') {
            return false;
        }
        while (s < stop_ && *s == ' ') {
            ++s;
        }
        return s == stop_ || *s == '#';
    }
    const char* behind_blanks(const char* s) const {
        while (s < stop_ && *s == ' ') {
            ++s;
        }
        return s;
    }

    void expect(Level& level, const char* s) {
        level.pending = true;
        level.pending_line = line_;
        level.pending_column = column(s);
    }
    void fill(Level& level) {
        if (level.pending) {
            tree_.scalar({end_, 0}, Style::plain, level.pending_line, level.pending_column, 0);
            level.pending = false;
        }
    }
    void close_level() {
        fill(levels_.back());
        levels_.pop_back();
        tree_.end();
    }
    bool open_level(bool sequence, const char* s) {
        if (levels_.size() >= limits_.depth_max) {
            return false;
        }
        if (!levels_.empty()) {
            levels_.back().pending = false;
        }
        tree_.begin(sequence ? NodeKind::sequence : NodeKind::mapping, line_, column(s));
        levels_.push_back({offset(s), sequence, false, 0, 0});
        return true;
    }

    // A line's content begins at s; finds the collection that it belongs to.
    bool content(const char* s) {
        const std::uint32_t indent = offset(s);
        while (!levels_.empty() && levels_.back().indent > indent) {
            close_level();
        }
        if (levels_.empty()) {
            return tree_.nodes.empty() && node(s);
        }
        Level& top = levels_.back();
        if (is_dash(s)) {
            if (top.sequence && top.indent == indent) {
                fill(top);
                return dash(s);
            }
            const bool here = top.pending && (top.sequence ? top.indent < indent : top.indent <= indent);
            return here && open_level(true, s) && dash(s);
        }
        if (top.sequence && top.indent == indent) {
            // Only a sequence that stands at the indentation of its name ends here.
            if (levels_.size() < 2 || levels_[levels_.size() - 2].sequence ||
                levels_[levels_.size() - 2].indent != indent) {
                return false;
            }
            close_level();
        }
        Level& level = levels_.back();
        if (level.indent == indent) {
            if (level.sequence) {
                return false;
            }
            fill(level);
            return member(s);
        }
        return level.pending && node(s);
    }

    // Opens a collection at s: at the start of the document, behind a dash, or on the line below a name.
    bool node(const char* s) {
        if (is_dash(s)) {
            return open_level(true, s) && dash(s);
        }
        return is_name(s) && open_level(false, s) && member(s);
    }

    bool dash(const char* s) {
        expect(levels_.back(), s + 1);
        const char* const rest = behind_blanks(s + 1);
        if (rest == stop_ || *rest == '#') {
            return true;
        }
        if (is_dash(rest) || is_name(rest)) {
            return node(rest);
        }
        levels_.back().pending = false;
        return value(rest);
    }

    // Sets name_* to the name at s, if there is one: a plain or quoted scalar and then ": " or ":" at the end.
    bool is_name(const char* s) {
        if (*s == '"' || *s == '\'') {
            const char* const close = closing_quote(s);
            if (close == nullptr) {
                return false;
            }
            const char* const colon = behind_blanks(close + 1);
            if (colon == stop_ || *colon != ':' || (colon + 1 < stop_ && colon[1] != ' ')) {
                return false;
            }
            name_end_ = close + 1;
            colon_ = colon;
            return colon - s < simple_key_max;
        }
        if (!starts_plain[static_cast<unsigned char>(*s)] && !(*s == '-' && !is_dash(s))) {
            return false;
        }
        for (const char* c = s; c < stop_; ++c) {
            if (*c == ':' && (c + 1 == stop_ || c[1] == ' ')) {
                name_end_ = c;
                while (name_end_ > s && name_end_[-1] == ' ') {
                    --name_end_;
                }
                colon_ = c;
                return c - s < simple_key_max;
            }
            if (*c == '#' && c > s && c[-1] == ' ') {
                return false;
            }
        }
        return false;
    }
    static constexpr std::ptrdiff_t simple_key_max = 1000;  // of libyaml's 1,024

    bool member(const char* s) {
        if (!is_name(s)) {
            return false;
        }
        const char* const colon = colon_;
        if (!scalar(s, name_end_)) {
            return false;
        }
        expect(levels_.back(), colon + 1);
        const char* const rest = behind_blanks(colon + 1);
        if (rest == stop_ || *rest == '#') {
            return true;
        }
        levels_.back().pending = false;
        return value(rest);
    }

    // A one-line scalar that was measured before.
    bool scalar(const char* s, const char* stop) {
        if (*s == '"' || *s == '\'') {
            return quoted(s, stop - 1);
        }
        tree_.scalar({s, static_cast<std::size_t>(stop - s)}, Style::plain, line_, column(s), width(s, stop));
        return true;
    }

    // The quote that closes the one at s, on the same line; nullptr if there is none.
    const char* closing_quote(const char* s) const {
        const char quote = *s;
        for (const char* c = s + 1; c < stop_; ++c) {
            if (*c == quote) {
                if (quote == '\'' && c + 1 < stop_ && c[1] == '\'') {
                    ++c;
                    continue;
                }
                return c;
            }
            if (*c == '\\' && quote == '"') {
                ++c;
            }
        }
        return nullptr;
    }

    bool quoted(const char* s, const char* close) {
        const std::string_view raw{s + 1, static_cast<std::size_t>(close - s - 1)};
        std::string_view text = raw;
        if (*s == '"' ? std::memchr(raw.data(), '\\', raw.size()) != nullptr
                      : std::memchr(raw.data(), '\'', raw.size()) != nullptr) {
            char* const begin = tree_.arena.take(raw.size());
            char* to = begin;
            for (std::size_t i = 0; i < raw.size(); ++i) {
                char c = raw[i];
                if (*s == '\'' && c == '\'') {
                    ++i;  // written twice
                } else if (*s == '"' && c == '\\') {
                    switch (raw[++i]) {
                        case 'n': c = '\n'; break;
                        case 't': c = '\t'; break;
                        case 'r': c = '\r'; break;
                        case '"': c = '"'; break;
                        case '\\': c = '\\'; break;
                        default: return false;
                    }
                }
                *to++ = c;
            }
            text = {begin, static_cast<std::size_t>(to - begin)};
        }
        tree_.scalar(text, Style::quoted, line_, column(s), width(s, close + 1));
        return true;
    }

    // The value of a member or entry, on the line of its name or dash.
    bool value(const char* s) {
        switch (*s) {
            case '"':
            case '\'': {
                const char* const close = closing_quote(s);
                return close != nullptr && is_end(close + 1) && quoted(s, close);
            }
            case '|':
            case '>': return block(s);
            case '[':
            case '{': {
                const char* behind = s;
                return flow(behind, 0) && is_end(behind);
            }
            default: break;
        }
        if (!starts_plain[static_cast<unsigned char>(*s)] && !(*s == '-' && !is_dash(s))) {
            return false;
        }
        const char* stop = stop_;
        for (const char* c = s; c < stop_; ++c) {
            if (*c == ':' && (c + 1 == stop_ || c[1] == ' ')) {
                return false;
            }
            if (*c == '#' && c > s && c[-1] == ' ') {
                stop = c;
                break;
            }
        }
        while (stop[-1] == ' ') {
            --stop;
        }
        tree_.scalar({s, static_cast<std::size_t>(stop - s)}, Style::plain, line_, column(s), width(s, stop));
        return true;
    }

    // A collection in brackets or braces that ends on its line. Moves s behind it.
    bool flow(const char*& s, unsigned depth) {
        if (depth + levels_.size() >= limits_.depth_max) {
            return false;
        }
        const bool sequence = *s == '[';
        const char close = sequence ? ']' : '}';
        tree_.begin(sequence ? NodeKind::sequence : NodeKind::mapping, line_, column(s));
        s = behind_blanks(s + 1);
        while (true) {
            if (s >= stop_) {
                return false;
            }
            if (*s == close) {
                break;
            }
            if (!sequence) {
                const char* const start = s;
                if (!flow_scalar(s) || s - start > simple_key_max) {
                    return false;
                }
                s = behind_blanks(s);
                // Behind a quoted name no blank is needed.
                if (s >= stop_ || *s != ':' || (s + 1 < stop_ && s[1] != ' ' && *start != '"' && *start != '\'')) {
                    return false;
                }
                s = behind_blanks(s + 1);
                if (s >= stop_ || *s == ',' || *s == '}') {
                    return false;
                }
            }
            if (*s == '[' || *s == '{' ? !flow(s, depth + 1) : !flow_scalar(s)) {
                return false;
            }
            s = behind_blanks(s);
            if (s >= stop_ || (*s != ',' && *s != close)) {
                return false;
            }
            if (*s == ',') {
                s = behind_blanks(s + 1);
                if (s < stop_ && *s == ',') {
                    return false;
                }
            }
        }
        ++s;
        tree_.end();
        return true;
    }

    bool flow_scalar(const char*& s) {
        if (*s == '"' || *s == '\'') {
            const char* const close = closing_quote(s);
            if (close == nullptr || !quoted(s, close)) {
                return false;
            }
            s = close + 1;
            return true;
        }
        if (!starts_plain[static_cast<unsigned char>(*s)] &&
            !(*s == '-' && s + 1 < stop_ && s[1] >= '0' && s[1] <= '9')) {
            return false;
        }
        const char* stop = s;
        while (stop < stop_) {
            const char c = *stop;
            if (ends_flow_plain[static_cast<unsigned char>(c)]) {
                if (c == ':' && stop + 1 < stop_ && stop[1] != ' ' &&
                    !ends_flow_plain[static_cast<unsigned char>(stop[1])]) {
                    ++stop;
                    continue;
                }
                if (c == '#' || c == '?') {
                    return false;
                }
                break;
            }
            ++stop;
        }
        const char* const behind = stop;
        while (stop > s && stop[-1] == ' ') {
            --stop;
        }
        tree_.scalar({s, static_cast<std::size_t>(stop - s)}, Style::plain, line_, column(s), width(s, stop));
        s = behind;
        return true;
    }

    // A literal or folded scalar; takes the lines below.
    bool block(const char* s) {
        const bool folded = *s == '>';
        const char* header = s + 1;
        char chomp = ' ';
        if (header < stop_ && (*header == '-' || *header == '+')) {
            chomp = *header++;
        }
        if (!is_end(header)) {
            return false;
        }
        const std::uint32_t parent = levels_.back().indent;
        const std::uint32_t start_line = line_;
        const std::uint32_t start_column = column(s);
        char* const begin = tree_.arena.take(static_cast<std::size_t>(block_bytes_max(parent)));
        char* to = begin;
        std::size_t indent = 0;
        std::size_t blank_max = 0;
        std::size_t blanks = 0;  // empty lines that wait for a line of text
        bool any = false;
        while (at_ < end_) {
            const char* const before = at_;
            take_line();
            const char* text = behind_blanks(begin_);
            const auto lead = static_cast<std::size_t>(text - begin_);
            if (text == stop_) {
                if (indent != 0 && lead > indent) {
                    return false;
                }
                blank_max = std::max(blank_max, lead);
                ++blanks;
                ++line_;
                continue;
            }
            if (indent == 0) {
                if (lead <= parent || blank_max > lead) {
                    return false;
                }
                indent = lead;
            } else if (lead < indent) {
                at_ = before;
                break;
            }
            text = begin_ + indent;
            if (folded && *text == ' ') {
                return false;
            }
            if (any && (!folded || blanks == 0)) {
                *to++ = folded ? ' ' : '\n';
            }
            for (; blanks > 0; --blanks) {
                *to++ = '\n';
            }
            std::memcpy(to, text, static_cast<std::size_t>(stop_ - text));
            to += stop_ - text;
            any = true;
            ++line_;
        }
        if (!any) {
            return false;
        }
        if (chomp != '-') {
            *to++ = '\n';
        }
        if (chomp == '+') {
            for (; blanks > 0; --blanks) {
                *to++ = '\n';
            }
        }
        tree_.scalar({begin, static_cast<std::size_t>(to - begin)}, Style::block, start_line, start_column, 0);
        return true;
    }

    // Up to the first line with text that is not indented enough: never less than the scalar needs.
    std::size_t block_bytes_max(std::uint32_t parent) const {
        const char* c = at_;
        while (c < end_) {
            const char* const newline =
                static_cast<const char*>(std::memchr(c, '\n', static_cast<std::size_t>(end_ - c)));
            const char* text = c;
            while (text < newline && *text == ' ') {
                ++text;
            }
            if (text < newline && *text != '\r' && text - c <= static_cast<std::ptrdiff_t>(parent)) {
                break;
            }
            c = newline + 1;
        }
        return static_cast<std::size_t>(c - at_) + 2;
    }

    Tree& tree_;
    const Limits& limits_;
    const char* at_;  // the next line
    const char* end_;
    const char* begin_ = nullptr;  // this line
    const char* stop_ = nullptr;   // its end, without the line break
    const char* name_end_ = nullptr;
    const char* colon_ = nullptr;
    std::uint32_t line_ = 1;
    bool ascii_ = true;
    std::vector<Level> levels_;
};

}  // namespace

bool scan_quick(Tree& tree, const Limits& limits) {
    return QuickScanner(tree, limits).run();
}

}  // namespace ossa::yaml
