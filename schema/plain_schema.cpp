#include "schema/plain_schema.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ossa::schema {
namespace {

using json::Value;

// What the metaschema asks of a keyword's value, as far as a quick look can tell.
enum class Kind : std::uint8_t {
    other,
    text,
    number,
    count,
    flag,
    anything,
    schema,
    schemas,
    type,
    required,
    values,
    plan
};

struct Keyword {
    std::string_view name;
    Kind kind;
};

// Everything that the metaschema lists must stand here; `plan` for what the quick look leaves to the plan.
constexpr std::array<Keyword, 46> keywords{{
    {"type", Kind::type},
    {"description", Kind::text},
    {"properties", Kind::schemas},
    {"items", Kind::schema},
    {"required", Kind::required},
    {"enum", Kind::values},
    {"default", Kind::anything},
    {"title", Kind::text},
    {"format", Kind::text},
    {"pattern", Kind::text},
    {"additionalProperties", Kind::schema},
    {"minimum", Kind::number},
    {"maximum", Kind::number},
    {"exclusiveMinimum", Kind::number},
    {"exclusiveMaximum", Kind::number},
    {"minLength", Kind::count},
    {"maxLength", Kind::count},
    {"minItems", Kind::count},
    {"maxItems", Kind::count},
    {"minProperties", Kind::count},
    {"maxProperties", Kind::count},
    {"uniqueItems", Kind::flag},
    {"readOnly", Kind::flag},
    {"writeOnly", Kind::flag},
    {"const", Kind::anything},
    {"$comment", Kind::text},
    {"contentMediaType", Kind::text},
    {"contentEncoding", Kind::text},
    {"definitions", Kind::schemas},
    {"patternProperties", Kind::schemas},
    {"additionalItems", Kind::schema},
    {"contains", Kind::schema},
    {"propertyNames", Kind::schema},
    {"if", Kind::schema},
    {"then", Kind::schema},
    {"else", Kind::schema},
    {"not", Kind::schema},
    {"$id", Kind::plan},
    {"$schema", Kind::plan},
    {"$ref", Kind::plan},
    {"examples", Kind::plan},
    {"multipleOf", Kind::plan},
    {"dependencies", Kind::plan},
    {"allOf", Kind::plan},
    {"anyOf", Kind::plan},
    {"oneOf", Kind::plan},
}};

// A word is told by its size and its first eight bytes. Keywords that share these are of one kind; a stranger that
// shares them with a keyword is only looked at more sharply than it need be. Of less than eight bytes, a key tells all.
using Key = std::uint64_t;
constexpr Key key_of_literal(std::string_view word) {
    return json::NameKey::of_literal(word).first ^ (std::uint64_t{word.size()} << 56U);
}
constexpr std::array<std::uint64_t, 9> first_bytes = [] {
    std::array<std::uint64_t, 9> out{};
    for (std::size_t i = 1; i < out.size(); ++i) {
        out[i] = out[i - 1] << 8U | 0xFFU;
    }
    return out;
}();
[[gnu::always_inline]] inline Key key_of(std::string_view word) noexcept {
    std::uint64_t first = 0;
    std::memcpy(&first, word.data(), sizeof first);  // a string of a Document
    first &= first_bytes[std::min<std::size_t>(word.size(), 8)];
    return first ^ (std::uint64_t{word.size()} << 56U);
}

// Keys in a table of 2^Bits places, by a hash that gives no two different ones the same.
template <unsigned Bits, std::size_t N>
class KeyTable {
  public:
    consteval explicit KeyTable(const std::array<Keyword, N>& words) {
        for (bool good = false; !good;) {
            factor_ += 0x2545F4914F6CDD1EULL;
            good = true;
            entries_ = {};
            for (const Keyword& word : words) {
                Entry& entry = entries_[place_of(key_of_literal(word.name))];
                const Entry wanted{key_of_literal(word.name), word.kind};
                good = good && (entry.key == 0 || (entry.key == wanted.key && entry.kind == wanted.kind));
                entry = wanted;
            }
        }
    }
    [[gnu::always_inline]] Kind find(std::string_view word) const noexcept {
        const Key key = key_of(word);
        const Entry& entry = entries_[place_of(key)];
        return entry.key == key ? entry.kind : Kind::other;
    }

  private:
    struct Entry {
        Key key = 0;
        Kind kind = Kind::other;
    };
    constexpr std::size_t place_of(Key key) const noexcept { return key * factor_ >> (64U - Bits); }

    std::uint64_t factor_ = 0x9E3779B97F4A7C15ULL;
    std::array<Entry, std::size_t{1} << Bits> entries_{};
};

constexpr KeyTable<8, keywords.size()> keyword_table{keywords};
constexpr KeyTable<4, 7> type_table{{{{"string", Kind::type},
                                      {"object", Kind::type},
                                      {"integer", Kind::type},
                                      {"number", Kind::type},
                                      {"array", Kind::type},
                                      {"boolean", Kind::type},
                                      {"null", Kind::type}}}};

bool is_type_name(std::string_view name) noexcept {
    return name.size() < 8 && type_table.find(name) == Kind::type;
}

// A short list of different strings. As long as each brings a new bit, none need be compared.
bool is_short_set(Value list) noexcept {
    constexpr std::uint32_t most = 16;
    if (!list.is_array()) {
        return false;
    }
    const std::uint32_t first = list.index() + 1;
    const std::uint32_t end = list.next() - 1;
    if (end - first > most) {
        return false;
    }
    const auto element = [&](std::uint32_t at) { return Value{list.tape(), list.strings(), at}; };
    std::uint64_t bits = 0;
    for (std::uint32_t at = first; at != end; ++at) {
        if (element(at).tag() != '"') {
            return false;
        }
        const std::string_view text = element(at).raw_string();
        const std::uint64_t bit = std::uint64_t{1} << (key_of(text) * 0x9E3779B97F4A7C15ULL >> 58U);
        if ((bits & bit) != 0) {
            for (std::uint32_t before = first; before != at; ++before) {
                if (element(before).raw_string() == text) {
                    return false;
                }
            }
        }
        bits |= bit;
    }
    return true;
}

constexpr std::size_t depth_max = 64;

struct Open {
    std::uint32_t end;  // its last word on the tape
    bool is_map;        // from names to schemas, no schema itself
};

}  // namespace

// One walk along the tape, from member to member of whatever schema or map of schemas is open.
bool is_plain_schema(Value root) noexcept {
    if (!root.is_object()) {
        return root.is_boolean();
    }
    std::array<Open, depth_max> outer;
    std::size_t depth = 0;
    Open open{root.next() - 1, false};
    std::uint32_t at = root.index() + 1;
    for (;;) {
        while (at == open.end) {
            if (depth == 0) {
                return true;
            }
            open = outer[--depth];
            ++at;
        }
        const Value name{root.tape(), root.strings(), at};
        const Value it{root.tape(), root.strings(), at + 1};
        const Kind kind = open.is_map ? Kind::schema : keyword_table.find(name.raw_string());
        const char tag = it.tag();
        bool good = true;
        switch (kind) {
            case Kind::schema:
            case Kind::schemas:
                if (tag == '{' && depth < depth_max) {
                    outer[depth++] = open;
                    open = {it.next() - 1, kind == Kind::schemas};
                    at += 2;
                    continue;
                }
                good = kind == Kind::schema && (tag == 't' || tag == 'f');
                break;
            case Kind::type: good = tag == '"' && is_type_name(it.raw_string()); break;
            case Kind::text: good = tag == '"'; break;
            case Kind::flag: good = tag == 't' || tag == 'f'; break;
            case Kind::number: good = it.is_number(); break;
            case Kind::count: good = tag == 'l' && *it.as_int64() >= 0; break;
            case Kind::required: good = is_short_set(it); break;
            case Kind::values: good = is_short_set(it) && !it.empty(); break;
            case Kind::other:
            case Kind::anything: break;
            case Kind::plan: return false;
        }
        if (!good) {
            return false;
        }
        at = it.next();
    }
}

}  // namespace ossa::schema
