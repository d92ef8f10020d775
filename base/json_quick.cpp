#include "base/json_quick.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/json_tape.hpp"

namespace ossa::json {

static_assert(padding_bytes >= simdjson::SIMDJSON_PADDING);

namespace {

// Up to here each name is compared with those before it; beyond, an object's names are sorted when it ends.
constexpr std::ptrdiff_t pairwise_max = 24;

// Copies n bytes, and up to a block more, and says whether there was no backslash among them. (One in the bytes too
// many only makes the caller look again.)
[[gnu::always_inline]] inline bool copy_plain(const std::uint8_t* from, std::uint8_t* to, std::size_t n) {
    typedef std::uint8_t Block __attribute__((vector_size(16)));
    Block found{};
    std::size_t i = 0;
    do {
        Block block;
        std::memcpy(&block, from + i, sizeof block);
        std::memcpy(to + i, &block, sizeof block);
        found |= static_cast<Block>(block == '\\');
        i += sizeof block;
    } while (i < n);
    std::uint64_t halves[2];
    std::memcpy(halves, &found, sizeof halves);
    return (halves[0] | halves[1]) == 0;
}

// One of 64 bits by the name's beginning and size. (The byte behind an empty name is its quote.)
[[gnu::always_inline]] inline std::uint64_t bit_of(std::string_view name) {
    const auto first = static_cast<unsigned char>(*name.data());
    return std::uint64_t{1} << ((first + 8 * name.size()) % 64);
}

bool is_space(std::uint8_t c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
bool is_digit(std::uint8_t c) {
    return c >= '0' && c <= '9';
}

}  // namespace

// From structural character to structural character. What is at hand is kept in local variables, few enough for the
// registers; all that is rare is done elsewhere.
template <bool HasEscapes>
[[gnu::noinline]] bool QuickReader::pass(const std::uint8_t* const text, const Limits& limits) {
    const std::uint32_t* next =
        structure_->structural_indexes.get();  // those to come; behind the last: the text's size
    const std::uint32_t* const last = next + structure_->n_structural_indexes;
    std::uint64_t* const tape = tape_.get();
    std::uint32_t* names = names_.get();  // the next one's place
    Scope* scope = scopes_.data();        // the open one; the first stands for the world outside
    const Scope* deepest = scope;
    std::size_t word = 1;
    std::size_t unescaped_end = 0;
    std::uint32_t others = 0;  // words that are no value: ends, and the second words of numbers
    std::uint32_t at = 0;      // of a value's first character

    strings_ = HasEscapes ? unescaped_.get() : text;

    // The string from the quote at `from` to the quote before `following`, a structural character or the text's end.
    std::string_view found;
    const auto string = [&](std::uint32_t from, std::uint32_t following) __attribute__((always_inline)) {
        const std::uint32_t begin = from + 1;
        std::uint32_t end = following - 1;
        while (text[end] != '"') {
            if (!is_space(text[end--])) {
                return false;
            }
        }
        std::size_t size = end - begin;
        if (end < begin) {
            return false;
        }
        if constexpr (HasEscapes) {
            std::uint8_t* const to = unescaped_.get() + unescaped_end;
            if (!copy_plain(text + begin, to, size) && !unescape(text + begin, to, size)) {
                return false;
            }
            found = {reinterpret_cast<const char*>(to), size};
            tape[word++] = tape_string(size, unescaped_end);
            unescaped_end += size;
        } else {
            found = {reinterpret_cast<const char*>(text + begin), size};
            tape[word++] = tape_string(size, begin);
        }
        return true;
    };

    if (next == last || limits.depth_max == 0) {
        return false;
    }
    at = *next++;
    if (text[at] == '{') {
        goto object;
    }
    if (text[at] == '[') {
        goto array;
    }
    return false;

object:
    if (scope == &scopes_.back() || next == last) {
        return false;
    }
    *++scope = {0, names, static_cast<std::uint32_t>(word++), 0, true};
    if (text[*next] == '}') {
        ++next;
        goto end;
    }
member : {
    // A name, a colon, a value, and another character behind it.
    if (last - next < 4 || text[next[0]] != '"' || text[next[1]] != ':') {
        return false;
    }
    *names = static_cast<std::uint32_t>(word);
    if (!string(next[0], next[1])) {
        return false;
    }
    // While its bit is new, so is the name.
    const std::uint64_t bit = bit_of(found);
    if ((scope->seen & bit) != 0 && stands_before(found, scope->first_name, names)) [[unlikely]] {
        return false;
    }
    scope->seen |= bit;
    ++names;
    at = next[2];
    next += 3;
    goto value;
}

array:
    if (scope == &scopes_.back() || next == last) {
        return false;
    }
    *++scope = {0, names, static_cast<std::uint32_t>(word++), 0, false};
    at = *next++;
    if (text[at] == ']') {
        goto end;
    }
    if (next == last) {
        return false;
    }

// Whoever comes here has seen that something stands behind the value.
value:
    switch (text[at]) {
        case '"':
            if (!string(at, *next)) {
                return false;
            }
            break;
        case '{': goto object;
        case '[': goto array;
        default: {
            const unsigned words = scalar(text + at, text + *next, tape + word);
            if (words == 0) {
                return false;
            }
            word += words;
            others += words - 1;
            break;
        }
    }

behind:
    at = *next++;
    if (scope->is_object) {
        if (text[at] == ',') {
            goto member;
        }
        if (text[at] != '}' || (names - scope->first_name > pairwise_max && is_repeated(scope->first_name, names))) {
            return false;
        }
    } else {
        ++scope->elements;
        if (text[at] == ',' && last - next >= 2) {
            at = *next++;
            goto value;
        }
        if (text[at] != ']') {
            return false;
        }
    }

end : {
    deepest = std::max<const Scope*>(deepest, scope);
    const auto counted = scope->is_object ? static_cast<std::uint64_t>(names - scope->first_name) : scope->elements;
    const std::uint64_t children = std::min(counted, many_children);
    tape[word++] = tape_word(scope->is_object ? '}' : ']', scope->start);
    tape[scope->start] = tape_word(scope->is_object ? '{' : '[', children << 32U | word);
    names = scope->first_name;
    ++others;
    if (--scope != scopes_.data()) {
        if (next == last) {
            return false;
        }
        goto behind;
    }
}
    if (next != last || word - 1 - others > limits.values_max) {
        return false;
    }
    tape[word++] = tape_word('r');
    tape[0] = tape_word('r', word);
    deepest_ = static_cast<unsigned>(deepest - scopes_.data());
    return true;
}

bool QuickReader::unescape(const std::uint8_t* from, std::uint8_t* to, std::size_t& size) const {
    const std::uint8_t* const end = structure_->parse_string(from, to);
    if (end == nullptr) {
        return false;
    }
    size = static_cast<std::size_t>(end - to);
    // The escape of a lone half of a surrogate pair makes bytes that are no UTF-8.
    for (std::size_t i = 0; i + 1 < size; ++i) {
        if (to[i] == 0xED && to[i + 1] >= 0xA0) {
            return false;
        }
    }
    return true;
}

// A number or a literal inside an object or array: `following`, the structural character behind it, ends every loop
// here. The number of words written; 0: not taken.
unsigned QuickReader::scalar(const std::uint8_t* from, const std::uint8_t* following, std::uint64_t* words) const {
    const auto ends_at = [&](const std::uint8_t* end) { return end == following || is_space(*end); };
    const auto literal = [&](std::string_view text, char tag) -> unsigned {
        words[0] = tape_word(tag);
        return std::memcmp(from, text.data(), text.size()) == 0 && ends_at(from + text.size()) ? 1 : 0;
    };
    switch (*from) {
        case 't': return literal("true", 't');
        case 'f': return literal("false", 'f');
        case 'n': return literal("null", 'n');
        default: break;
    }
    const std::uint8_t* end = from;
    const auto skip_digits = [&] {
        const std::uint8_t* const begin = end;
        while (is_digit(*end)) {
            ++end;
        }
        return end - begin;
    };
    const bool negative = *end == '-';
    end += negative ? 1 : 0;
    const std::uint8_t* const whole = end;
    const auto digits = skip_digits();
    if (digits == 0 || (digits > 1 && *whole == '0')) {
        return 0;
    }
    if (digits <= 18 && ends_at(end)) {
        std::uint64_t value = 0;
        for (const std::uint8_t* digit = whole; digit != end; ++digit) {
            value = value * 10 + (*digit - std::uint64_t{'0'});
        }
        words[0] = tape_word('l');
        words[1] = negative ? ~value + 1 : value;
        return 2;
    }
    if (*end == '.') {
        ++end;
        if (skip_digits() == 0) {
            return 0;
        }
    }
    if (*end == 'e' || *end == 'E') {
        ++end;
        end += *end == '+' || *end == '-' ? 1 : 0;
        if (skip_digits() == 0) {
            return 0;
        }
    } else if (end - whole == digits) {
        return 0;  // an integer of more than 18 digits, or no number
    }
    double value = 0;
    const auto* const to = reinterpret_cast<const char*>(end);
    const auto read = std::from_chars(reinterpret_cast<const char*>(from), to, value);
    if (read.ec != std::errc{} || read.ptr != to || !ends_at(end)) {
        return 0;
    }
    words[0] = tape_word('d');
    std::memcpy(&words[1], &value, sizeof value);
    return 2;
}

std::string_view QuickReader::text_of(std::uint32_t name) const {
    return Value{tape_.get(), strings_, name}.raw_string();
}

bool QuickReader::stands_before(std::string_view text, const std::uint32_t* first, const std::uint32_t* last) const {
    return last - first < pairwise_max &&
           std::any_of(first, last, [&](std::uint32_t before) { return text_of(before) == text; });
}

bool QuickReader::is_repeated(std::uint32_t* first, std::uint32_t* last) const {
    std::sort(first, last, [&](std::uint32_t a, std::uint32_t b) { return text_of(a) < text_of(b); });
    return std::adjacent_find(first, last,
                              [&](std::uint32_t a, std::uint32_t b) { return text_of(a) == text_of(b); }) != last;
}

QuickReader::QuickReader() = default;
QuickReader::~QuickReader() = default;

// Room for the worst that a text of this size can hold. What is not used is never touched.
bool QuickReader::reserve(std::size_t bytes, std::size_t depth) {
    constexpr std::size_t least = std::size_t{16} << 10;
    const std::size_t room = std::max(least, std::bit_ceil(bytes + 1));
    if (structure_ == nullptr) {
        if (simdjson::get_active_implementation()->create_dom_parser_implementation(room, 1, structure_) !=
            simdjson::SUCCESS) {
            return false;
        }
    } else if (structure_->capacity() < room && structure_->set_capacity(room) != simdjson::SUCCESS) {
        return false;
    }
    scopes_.resize(depth + 1);
    return true;
}

bool QuickReader::read(std::string_view text, const Limits& limits) {
    constexpr std::size_t depth_max = 1024;
    const std::size_t depth = std::min<std::size_t>(limits.depth_max, depth_max);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
    if (!reserve(text.size(), depth) ||
        structure_->stage1(bytes, text.size(), simdjson::stage1_mode::regular) != simdjson::SUCCESS) {
        return false;
    }
    // A number takes one structural character and two words; a member takes at least three characters.
    const std::size_t count = structure_->n_structural_indexes;
    if (words_ < 2 * count + 4) {
        words_ = std::bit_ceil(2 * count + 4);
        tape_ = std::make_unique_for_overwrite<std::uint64_t[]>(words_);
    }
    if (names_size_ < count / 3 + 1) {
        names_size_ = std::bit_ceil(count / 3 + 1);
        names_ = std::make_unique_for_overwrite<std::uint32_t[]>(names_size_);
    }
    if (std::memchr(text.data(), '\\', text.size()) == nullptr) {
        return pass<false>(bytes, limits);
    }
    if (unescaped_size_ < text.size()) {
        unescaped_size_ = std::bit_ceil(text.size());
        unescaped_ = std::make_unique_for_overwrite<std::uint8_t[]>(unescaped_size_ + padding_bytes);
    }
    return pass<true>(bytes, limits);
}

}  // namespace ossa::json
