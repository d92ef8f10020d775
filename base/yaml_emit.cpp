// Tree to value: resolves scalars, names, aliases and merge keys in the order in which go-yaml v2 does it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "base/yaml_tree.hpp"

namespace ossa::yaml {
namespace {

using Kind = Scalar::Kind;

std::string_view shown(Tag tag) {
    switch (tag) {
        case Tag::boolean: return "!!bool";
        case Tag::integer: return "!!int";
        case Tag::number: return "!!float";
        case Tag::null: return "!!null";
        case Tag::timestamp: return "!!timestamp";
        default: return "!!str";
    }
}

// YYYY-M-D with an optional time: near enough to go-yaml's formats for the one case that an explicit !!timestamp makes.
bool looks_like_timestamp(std::string_view text) {
    return text.size() >= 8 && text[4] == '-' &&
           std::all_of(text.begin(), text.begin() + 4, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::string> base64(std::string_view text) {
    std::string out;
    std::uint32_t bits = 0;
    int count = 0;
    std::size_t padding = 0;
    std::size_t symbols = 0;
    for (const char c : text) {
        if (c == '\n' || c == '\r') {
            continue;
        }
        std::uint32_t value = 0;
        if (c >= 'A' && c <= 'Z') {
            value = static_cast<std::uint32_t>(c - 'A');
        } else if (c >= 'a' && c <= 'z') {
            value = static_cast<std::uint32_t>(c - 'a') + 26;
        } else if (c >= '0' && c <= '9') {
            value = static_cast<std::uint32_t>(c - '0') + 52;
        } else if (c == '+' || c == '/') {
            value = c == '+' ? 62 : 63;
        } else if (c == '=') {
            ++padding;
            ++symbols;
            continue;
        } else {
            return {};
        }
        if (padding != 0) {
            return {};
        }
        ++symbols;
        bits = (bits << 6U) | value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out.push_back(static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xFFU));
        }
    }
    if (symbols % 4 != 0 || padding > 2) {
        return {};
    }
    return out;
}

// The length of the UTF-8 sequence at `at`, 0 if it is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const auto more = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
    const unsigned first = byte(at);
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC2 && first < 0xE0 && more(at + 1)) {
        return 2;
    }
    if ((first & 0xF0U) == 0xE0 && more(at + 1) && more(at + 2)) {
        const unsigned second = byte(at + 1);
        const bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0);
        return bad ? 0 : 3;
    }
    if (first >= 0xF0 && first < 0xF5 && more(at + 1) && more(at + 2) && more(at + 3)) {
        const unsigned second = byte(at + 1);
        const bool bad = (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
        return bad ? 0 : 4;
    }
    return 0;
}

std::string as_utf8(std::string_view bytes) {
    std::string out;
    for (std::size_t i = 0; i < bytes.size();) {
        const std::size_t length = utf8_length(bytes, i);
        if (length == 0) {
            out.append("\xEF\xBF\xBD");
            ++i;
        } else {
            out.append(bytes.substr(i, length));
            i += length;
        }
    }
    return out;
}

// Go's FormatFloat(value, 'g', -1, 32), which sigs.k8s.io/yaml uses for names.
std::string float_name(double value) {
    const auto narrow = static_cast<float>(value);
    if (narrow == 0) {
        return std::signbit(narrow) ? "-0" : "0";
    }
    if (std::isinf(narrow)) {
        return narrow > 0 ? ".inf" : "-.inf";
    }
    char buffer[64];
    const auto made = std::to_chars(buffer, buffer + sizeof buffer, narrow, std::chars_format::scientific);
    const std::string_view text{buffer, static_cast<std::size_t>(made.ptr - buffer)};
    const std::size_t e = text.find('e');
    int exponent = 0;
    const std::size_t exponent_at = e + (text[e + 1] == '+' ? 2U : 1U);
    std::from_chars(text.data() + exponent_at, text.data() + text.size(), exponent);
    const bool negative = text[0] == '-';
    std::string digits;
    for (const char c : text.substr(0, e)) {
        if (c >= '0' && c <= '9') {
            digits.push_back(c);
        }
    }
    const auto count = static_cast<int>(digits.size());
    std::string out = negative ? "-" : "";
    if (exponent < -4 || exponent >= 6) {
        out.push_back(digits[0]);
        if (count > 1) {
            out.push_back('.');
            out.append(digits, 1);
        }
        out.append(exponent < 0 ? "e-" : "e+");
        const int magnitude = std::abs(exponent);
        if (magnitude < 10) {
            out.push_back('0');
        }
        return out + std::to_string(magnitude);
    }
    if (exponent < 0) {
        return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    }
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole) {
        return out + digits + std::string(whole - digits.size(), '0');
    }
    return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

bool is_canonical_bool(std::string_view text) {
    return text == "true" || text == "false" || text == "True" || text == "False" || text == "TRUE" || text == "FALSE";
}

// Numbers that another reader of YAML 1.2 takes for another number or for a string.
bool is_odd_number(std::string_view text) {
    if (text.find('_') != std::string_view::npos) {
        return true;
    }
    std::string_view digits = text;
    const bool has_sign = digits.starts_with('-') || digits.starts_with('+');
    if (has_sign) {
        digits.remove_prefix(1);
    }
    if (digits.size() > 1 && digits[0] == '0') {
        const char c = digits[1];
        return (c >= '0' && c <= '9') || c == 'b' || c == 'B' || (has_sign && (c == 'x' || c == 'X'));
    }
    return false;
}

class Emitter {
  public:
    Emitter(Tree& tree, const Limits& limits, json::Builder& builder, std::vector<Remark>& remarks)
        : tree_(tree), limits_(limits), builder_(builder), remarks_(remarks) {}

    std::optional<Problem> run() {
        decoded_ = 1;  // go-yaml counts the document as well
        value(0);
        return std::move(problem_);
    }

  private:
    struct Entry {
        std::string_view name;
        std::uint32_t name_at;
        std::uint32_t value_at;
        bool merged;
    };

    const Node& node(std::uint32_t index) const { return tree_.nodes[index]; }
    bool fail(std::string rule, Place place, std::string message, std::string hint = {}) {
        problem_ = Problem{std::move(rule), place, std::move(message), std::move(hint)};
        return false;
    }

    // go-yaml's own measure against alias bombs, and ours.
    bool count(const Node& at) {
        ++decoded_;
        if (alias_depth_ > 0) {
            ++by_alias_;
            if (by_alias_ > 100 && decoded_ > 1000 &&
                static_cast<double>(by_alias_) / static_cast<double>(decoded_) > ratio_max()) {
                return fail("yaml/alias", at.place(), "so many aliases that kubectl refuses the document",
                            "write the values out");
            }
        }
        if (builder_.values() > limits_.values_max || decoded_ > std::uint64_t{4} * limits_.values_max) {
            return fail("yaml/size", at.place(),
                        "more than " + std::to_string(limits_.values_max) + " values in one document");
        }
        return true;
    }
    double ratio_max() const {
        constexpr double low = 400'000;
        constexpr double high = 4'000'000;
        const auto decoded = static_cast<double>(decoded_);
        if (decoded <= low) {
            return 0.99;
        }
        return decoded >= high ? 0.10 : 0.99 - 0.89 * ((decoded - low) / (high - low));
    }

    bool value(std::uint32_t index) {
        const Node& at = node(index);
        if (!count(at)) {
            return false;
        }
        switch (at.kind) {
            case NodeKind::scalar: return tree_.notation == Notation::json ? json_scalar(at) : scalar(index);
            case NodeKind::alias: {
                if (!enter_alias(at)) {
                    return false;
                }
                const bool good = value(at.target);
                leave_alias();
                return good;
            }
            case NodeKind::sequence: {
                if (!deeper(at)) {
                    return false;
                }
                builder_.begin_array();
                const std::uint32_t end = at.next;
                for (std::uint32_t child = index + 1; child < end; child = node(child).next) {
                    if (!value(child)) {
                        return false;
                    }
                }
                builder_.end_array();
                --depth_;
                return true;
            }
            case NodeKind::mapping: return mapping(index);
        }
        return true;
    }

    bool deeper(const Node& at) {
        if (depth_ >= limits_.depth_max) {
            return fail("yaml/depth", at.place(),
                        "nested deeper than " + std::to_string(limits_.depth_max) + " levels");
        }
        ++depth_;
        return true;
    }

    bool enter_alias(const Node& at) {
        // A node within itself: its anchor is open, so its `next` lies behind the alias.
        if (std::find(active_.begin(), active_.end(), at.target) != active_.end() ||
            (&at >= &node(at.target) && static_cast<std::uint32_t>(&at - tree_.nodes.data()) < node(at.target).next)) {
            return fail("yaml/alias", at.place(), "the anchor &" + std::string{at.view()} + " contains itself");
        }
        active_.push_back(at.target);
        ++alias_depth_;
        return true;
    }
    void leave_alias() {
        active_.pop_back();
        --alias_depth_;
    }

    bool mapping(std::uint32_t index) {
        if (!deeper(node(index))) {
            return false;
        }
        const std::size_t base = entries_.size();
        if (!collect(index, base, false)) {
            return false;
        }
        builder_.begin_object();
        for (std::size_t i = base; i < entries_.size(); ++i) {
            const Entry entry = entries_[i];
            builder_.name(entry.name);
            if (!written(entry.name.size(), node(entry.name_at)) || !value(entry.value_at)) {
                return false;
            }
        }
        builder_.end_object();
        entries_.resize(base);
        --depth_;
        return true;
    }

    // Adds a mapping's members to entries_[base..]; a later one of a name takes the place of an earlier.
    bool collect(std::uint32_t index, std::size_t base, bool merged) {
        const std::uint32_t end = node(index).next;
        std::unordered_map<std::string_view, std::size_t> known;  // only for large mappings
        for (std::uint32_t name_at = index + 1; name_at < end;) {
            const std::uint32_t value_at = node(name_at).next;
            const std::uint32_t behind = node(value_at).next;
            if (is_merge(node(name_at)) && tree_.notation == Notation::yaml) {
                if (!merge(value_at, base)) {
                    return false;
                }
                known.clear();
                name_at = behind;
                continue;
            }
            if (!count(node(name_at))) {
                return false;
            }
            const auto name = name_of(tree_, name_at);
            if (!name) {
                return bad_name(name_at);
            }
            Entry* const earlier = find(*name, base, known);
            if (earlier == nullptr) {
                entries_.push_back({*name, name_at, value_at, merged});
                if (entries_.size() - base > few) {
                    known.emplace(*name, entries_.size() - 1);
                }
            } else {
                supersede(*earlier, {*name, name_at, value_at, merged});
            }
            if (alias_depth_ == 0 && node(name_at).style == Style::plain && node(name_at).tag == Tag::none &&
                resolve(node(name_at).view()).kind == Kind::boolean && tree_.notation == Notation::yaml &&
                !is_canonical_bool(node(name_at).view())) {
                remark(RemarkKind::boolean_key, node(name_at).place(), {}, value_at, node(name_at).view(),
                       "\"" + std::string{*name} + "\"");
            }
            name_at = behind;
        }
        return true;
    }

    static constexpr std::size_t few = 16;

    Entry* find(std::string_view name, std::size_t base, std::unordered_map<std::string_view, std::size_t>& known) {
        if (entries_.size() - base <= few) {
            for (std::size_t i = base; i < entries_.size(); ++i) {
                if (entries_[i].name == name) {
                    return &entries_[i];
                }
            }
            return nullptr;
        }
        if (known.empty()) {
            for (std::size_t i = base; i < entries_.size(); ++i) {
                known.emplace(entries_[i].name, i);
            }
        }
        const auto found = known.find(name);
        return found == known.end() ? nullptr : &entries_[found->second];
    }

    void supersede(Entry& earlier, const Entry& later) {
        if (!earlier.merged && !later.merged) {
            if (alias_depth_ == 0) {
                remark(RemarkKind::duplicate_key, node(later.name_at).place(), node(earlier.name_at).place(),
                       later.value_at, later.name, {});
            }
        } else if (!earlier.merged && later.merged && alias_depth_ <= 1) {
            remark(RemarkKind::merge_overrides, node(earlier.name_at).place(), node(later.name_at).place(),
                   earlier.value_at, earlier.name, {});
        }
        const bool stays_explicit = !earlier.merged || !later.merged;
        const std::uint32_t name_at = later.merged && !earlier.merged ? earlier.name_at : later.name_at;
        earlier = {later.name, name_at, later.value_at, !stays_explicit};
    }

    bool merge(std::uint32_t value_at, std::size_t base) {
        const Node& from = node(value_at);
        const auto wrong = [&] {
            return fail("yaml/merge", from.place(), "a merge key << needs a mapping, or a list of mappings");
        };
        switch (from.kind) {
            case NodeKind::mapping: return count(from) && collect(value_at, base, true);
            case NodeKind::alias: {
                if (node(from.target).kind != NodeKind::mapping) {
                    return wrong();
                }
                return merge_alias(from, base);
            }
            case NodeKind::sequence: {
                std::vector<std::uint32_t> children;
                for (std::uint32_t child = value_at + 1; child < from.next; child = node(child).next) {
                    children.push_back(child);
                }
                // The first of the list wins, so it comes last.
                for (auto child = children.rbegin(); child != children.rend(); ++child) {
                    const Node& one = node(*child);
                    const bool is_mapping = one.kind == NodeKind::mapping ||
                                            (one.kind == NodeKind::alias && node(one.target).kind == NodeKind::mapping);
                    if (!is_mapping) {
                        return wrong();
                    }
                    if (one.kind == NodeKind::alias ? !merge_alias(one, base)
                                                    : !(count(one) && collect(*child, base, true))) {
                        return false;
                    }
                }
                return true;
            }
            case NodeKind::scalar: return wrong();
        }
        return true;
    }

    bool merge_alias(const Node& alias, std::size_t base) {
        if (!count(alias) || !enter_alias(alias)) {
            return false;
        }
        const bool good = count(node(alias.target)) && collect(alias.target, base, true);
        leave_alias();
        return good;
    }

    bool bad_name(std::uint32_t index) {
        const Node& at = node(index);
        const Node& target = at.kind == NodeKind::alias ? node(at.target) : at;
        if (target.kind == NodeKind::mapping || target.kind == NodeKind::sequence) {
            std::string hint;
            // "{{ x }}" is a mapping with a mapping as its name.
            if (index > 0 && node(index - 1).kind == NodeKind::mapping && target.kind == NodeKind::mapping &&
                node(index - 1).line == at.line && node(index - 1).column + 1 == at.column) {
                hint = "this looks like a template: render it first, for example helm template . | ossa-validator -";
            }
            return fail("yaml/key", at.place(), "a mapping or list cannot be a key", std::move(hint));
        }
        return fail("yaml/key", at.place(),
                    "this key is no text: found " + (target.length == 0 ? "nothing" : std::string{target.view()}),
                    "put the key in quotes");
    }

    bool written(std::size_t bytes, const Node& at) {
        if (alias_depth_ > 0) {
            bytes_by_alias_ += bytes;
            if (bytes_by_alias_ > limits_.bytes_max) {
                return fail(
                    "yaml/size", at.place(),
                    "more than " + std::to_string(limits_.bytes_max) + " bytes when the aliases are written out");
            }
        }
        return true;
    }

    bool string(const Node& at) {
        builder_.string(at.view());
        return written(at.length, at);
    }

    bool scalar(std::uint32_t index) {
        const Node& at = node(index);
        if (at.tag == Tag::none) {
            return at.style == Style::plain ? plain(index) : string(at);
        }
        if (at.tag == Tag::str || at.tag == Tag::other || at.tag == Tag::merge) {
            return string(at);
        }
        if (at.tag == Tag::binary) {
            const auto bytes = base64(at.view());
            if (!bytes) {
                return fail("yaml/tag", at.place(), "a !!binary value must be base64");
            }
            builder_.string(as_utf8(*bytes));
            return written(bytes->size(), at);
        }
        const Scalar found = resolve(at.view());
        const auto no = [&](std::string_view what) {
            return fail("yaml/tag", at.place(),
                        "cannot read " + std::string{what} + " `" + std::string{at.view().substr(0, 40)} + "` as " +
                            std::string{shown(at.tag)});
        };
        switch (found.kind) {
            case Kind::string:
                if (at.tag == Tag::timestamp && looks_like_timestamp(at.view())) {
                    return string(at);
                }
                return no("the text");
            case Kind::null:
                if (at.tag != Tag::null) {
                    return no("the null");
                }
                break;
            case Kind::boolean:
                if (at.tag != Tag::boolean) {
                    return no("the boolean");
                }
                break;
            case Kind::integer:
                if (at.tag != Tag::integer && at.tag != Tag::number) {
                    return no("the number");
                }
                break;
            case Kind::unsigned_integer:
                if (at.tag != Tag::integer) {
                    return no("the number");
                }
                break;
            case Kind::number:
            case Kind::not_finite:
                if (at.tag != Tag::number) {
                    return no("the number");
                }
                break;
        }
        return typed(found, index);
    }

    bool plain(std::uint32_t index) {
        const Node& at = node(index);
        const Scalar found = resolve(at.view());
        if (found.kind == Kind::string) {
            return string(at);
        }
        if (alias_depth_ == 0) {
            if (found.kind == Kind::boolean && !is_canonical_bool(at.view())) {
                remark(RemarkKind::boolean_word, at.place(), {}, index, at.view(), found.boolean ? "true" : "false");
            } else if (found.kind == Kind::integer && is_odd_number(at.view())) {
                remark(RemarkKind::odd_number, at.place(), {}, index, at.view(), std::to_string(found.integer));
            } else if (found.kind == Kind::number && is_odd_number(at.view())) {
                char buffer[40];
                const auto made = std::to_chars(buffer, buffer + sizeof buffer, found.number);
                remark(RemarkKind::odd_number, at.place(), {}, index, at.view(), std::string(buffer, made.ptr));
            }
        }
        return typed(found, index);
    }

    bool typed(const Scalar& found, std::uint32_t index) {
        switch (found.kind) {
            case Kind::string: break;
            case Kind::null: builder_.null(); break;
            case Kind::boolean: builder_.boolean(found.boolean); break;
            case Kind::integer: builder_.integer(found.integer); break;
            case Kind::unsigned_integer: builder_.unsigned_integer(found.unsigned_integer); break;
            case Kind::number: builder_.number(found.number); break;
            case Kind::not_finite:
                builder_.null();
                if (alias_depth_ == 0) {
                    remark(RemarkKind::not_finite, node(index).place(), {}, index, node(index).view(), "null");
                }
                break;
        }
        return true;
    }

    bool json_scalar(const Node& at) {
        const std::string_view text = at.view();
        if (at.style == Style::quoted) {
            return string(at);
        }
        if (text == "null") {
            builder_.null();
        } else if (text == "true" || text == "false") {
            builder_.boolean(text == "true");
        } else {
            std::int64_t whole = 0;
            double real = 0;
            const char* const last = text.data() + text.size();
            if (const auto made = std::from_chars(text.data(), last, whole);
                made.ec == std::errc{} && made.ptr == last) {
                builder_.integer(whole);
            } else if (std::from_chars(text.data(), last, real).ec == std::errc{}) {
                builder_.number(real);
            } else {
                return fail("yaml/number", at.place(),
                            "the number " + std::string{text.substr(0, 40)} + " is too large");
            }
        }
        return true;
    }

    void remark(RemarkKind kind, Place place, Place other, std::uint32_t value_at, std::string_view text,
                std::string_view became) {
        if (remarks_.size() < 1000) {
            remarks_.push_back(
                {kind, place, other, pointer_to(tree_, value_at), std::string{text}, std::string{became}});
        }
    }

    Tree& tree_;
    const Limits& limits_;
    json::Builder& builder_;
    std::vector<Remark>& remarks_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> active_;  // targets of the aliases that are open
    std::optional<Problem> problem_;
    std::uint64_t decoded_ = 0;
    std::uint64_t by_alias_ = 0;
    std::uint64_t bytes_by_alias_ = 0;
    unsigned alias_depth_ = 0;
    unsigned depth_ = 0;
};

}  // namespace

bool is_merge(const Node& name) {
    return name.kind == NodeKind::scalar && name.length == 2 && name.view() == "<<" &&
           ((name.style == Style::plain && name.tag == Tag::none) || name.tag == Tag::merge);
}

std::optional<std::string_view> name_of(Tree& tree, std::uint32_t index) {
    const Node* at = &tree.nodes[index];
    if (at->kind == NodeKind::alias) {
        at = &tree.nodes[at->target];
    }
    if (at->kind != NodeKind::scalar) {
        return {};
    }
    if (at->tag == Tag::binary) {
        const auto bytes = base64(at->view());
        return bytes ? std::optional{tree.arena.copy(as_utf8(*bytes))} : std::nullopt;
    }
    const bool resolvable = at->tag == Tag::none
                                ? at->style == Style::plain && tree.notation == Notation::yaml
                                : at->tag != Tag::str && at->tag != Tag::other && at->tag != Tag::merge;
    if (!resolvable) {
        return at->view();
    }
    const Scalar found = resolve(at->view());
    switch (found.kind) {
        case Kind::string: return at->view();
        case Kind::null:
        case Kind::unsigned_integer: return {};
        case Kind::boolean: return found.boolean ? "true" : "false";
        case Kind::integer: return tree.arena.copy(std::to_string(found.integer));
        case Kind::number: return tree.arena.copy(float_name(found.number));
        case Kind::not_finite: {
            const std::string_view text = at->view();
            if (text.find_first_of("aA") != std::string_view::npos) {
                return ".nan";
            }
            return text[0] == '-' ? "-.inf" : ".inf";
        }
    }
    return {};
}

std::string pointer_to(Tree& tree, std::uint32_t index) {
    std::string pointer;
    std::uint32_t at = 0;
    while (at != index && at < tree.nodes.size()) {
        const Node& parent = tree.nodes[at];
        std::uint32_t child = at + 1;
        std::size_t position = 0;
        while (child < parent.next && tree.nodes[child].next <= index) {
            child = tree.nodes[child].next;
            ++position;
        }
        if (child >= parent.next) {
            break;
        }
        pointer.push_back('/');
        if (parent.kind == NodeKind::mapping) {
            // Names stand at even positions; within a name there is nothing to point at.
            const bool in_value = position % 2 == 1;
            std::uint32_t name_at = at + 1;
            for (std::size_t i = 0; i + 1 < position + (in_value ? 0U : 1U); ++i) {
                name_at = tree.nodes[name_at].next;
            }
            json::append_pointer_token(pointer, name_of(tree, name_at).value_or(""));
            if (!in_value) {
                break;
            }
        } else {
            pointer.append(std::to_string(position));
        }
        at = child;
    }
    return pointer;
}

std::optional<Problem> emit(Tree& tree, const Limits& limits, json::Builder& builder, std::vector<Remark>& remarks) {
    return Emitter(tree, limits, builder, remarks).run();
}

std::uint32_t code_points(std::string_view text) noexcept {
    std::uint32_t count = 0;
    for (const char c : text) {
        count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1U : 0U;
    }
    return count;
}

}  // namespace ossa::yaml
