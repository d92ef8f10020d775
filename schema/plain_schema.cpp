#include "schema/plain_schema.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>

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
    consteval Keyword(std::string_view text, Kind kind_in)
        : name(text), key(json::NameKey::of_literal(text)), kind(kind_in) {}
    std::string_view name;
    json::NameKey key;
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

// A place for each keyword, by a hash that gives no two the same.
constexpr unsigned place_bits = 8;
constexpr std::size_t place_of(const json::NameKey& key, std::uint64_t factor) {
    return ((key.first ^ key.last << 5U) + key.size) * factor >> (64U - place_bits);
}

constexpr std::uint64_t factor = [] {
    for (std::uint64_t candidate = 0x9E3779B97F4A7C15ULL;; candidate += 0x2545F4914F6CDD1EULL) {
        std::array<bool, std::size_t{1} << place_bits> taken{};
        bool good = true;
        for (const Keyword& keyword : keywords) {
            bool& place = taken[place_of(keyword.key, candidate)];
            good = good && !place;
            place = true;
        }
        if (good) {
            return candidate;
        }
    }
}();

// Keyword index + 1 by place.
constexpr std::array<std::uint8_t, std::size_t{1} << place_bits> places = [] {
    std::array<std::uint8_t, std::size_t{1} << place_bits> out{};
    for (std::size_t i = 0; i < keywords.size(); ++i) {
        out[place_of(keywords[i].key, factor)] = static_cast<std::uint8_t>(i + 1);
    }
    return out;
}();

Kind kind_of(std::string_view name) noexcept {
    const json::NameKey key = json::NameKey::of(name);
    const std::uint8_t place = places[place_of(key, factor)];
    if (place == 0) {
        return Kind::other;
    }
    const Keyword& keyword = keywords[place - 1U];
    return keyword.key == key && (key.decides() || keyword.name == name) ? keyword.kind : Kind::other;
}

constexpr json::NameKey type_names[] = {
    json::NameKey::of_literal("string"), json::NameKey::of_literal("object"), json::NameKey::of_literal("integer"),
    json::NameKey::of_literal("number"), json::NameKey::of_literal("array"),  json::NameKey::of_literal("boolean"),
    json::NameKey::of_literal("null"),
};

bool is_type_name(std::string_view name) noexcept {
    const json::NameKey key = json::NameKey::of(name);
    return std::any_of(std::begin(type_names), std::end(type_names), [&](const auto& one) { return one == key; });
}

// A short list of different strings.
bool is_short_set(Value list) noexcept {
    constexpr std::size_t most = 16;
    if (!list.is_array() || list.size() > most) {
        return false;
    }
    std::array<std::string_view, most> seen;
    std::size_t n = 0;
    for (const Value element : list.elements()) {
        if (!element.is_string()) {
            return false;
        }
        const std::string_view text = element.raw_string();
        for (std::size_t i = 0; i < n; ++i) {
            if (seen[i].size() == text.size() && std::memcmp(seen[i].data(), text.data(), text.size()) == 0) {
                return false;
            }
        }
        seen[n++] = text;
    }
    return true;
}

constexpr unsigned depth_max = 64;

// Walks the tape: each call gives the index behind what it looked at, or 0 for "ask the plan".
class Look {
  public:
    explicit Look(Value root) : tape_(root.tape()), strings_(root.strings()) {}

    std::uint32_t schema(std::uint32_t at, unsigned depth) const noexcept {
        const Value schema = value(at);
        if (!schema.is_object()) {
            return schema.is_boolean() ? at + 1 : 0;
        }
        if (depth == 0) {
            return 0;
        }
        const std::uint32_t end = schema.next() - 1;
        for (std::uint32_t i = at + 1; i != end;) {
            i = keyword(kind_of(value(i).raw_string()), i + 1, depth);
            if (i == 0) {
                return 0;
            }
        }
        return end + 1;
    }

  private:
    [[gnu::always_inline]] Value value(std::uint32_t at) const noexcept { return {tape_, strings_, at}; }

    [[gnu::always_inline]] std::uint32_t keyword(Kind kind, std::uint32_t at, unsigned depth) const noexcept {
        const Value it = value(at);
        bool good = true;
        switch (kind) {
            case Kind::text: return it.is_string() ? at + 1 : 0;
            case Kind::type: return it.is_string() && is_type_name(it.raw_string()) ? at + 1 : 0;
            case Kind::flag: return it.is_boolean() ? at + 1 : 0;
            case Kind::schema: return schema(at, depth - 1);
            case Kind::schemas: return schemas(at, depth - 1);
            case Kind::other:
            case Kind::anything: break;
            case Kind::number: good = it.is_number(); break;
            case Kind::count: good = it.tag() == 'l' && *it.as_int64() >= 0; break;
            case Kind::required: good = is_short_set(it); break;
            case Kind::values: good = is_short_set(it) && !it.empty(); break;
            case Kind::plan: return 0;
        }
        return good ? it.next() : 0;
    }

    std::uint32_t schemas(std::uint32_t at, unsigned depth) const noexcept {
        const Value object = value(at);
        if (!object.is_object()) {
            return 0;
        }
        const std::uint32_t end = object.next() - 1;
        for (std::uint32_t i = at + 1; i != end;) {
            i = schema(i + 1, depth);
            if (i == 0) {
                return 0;
            }
        }
        return end + 1;
    }

    const std::uint64_t* tape_;
    const std::uint8_t* strings_;
};

}  // namespace

bool is_plain_schema(Value schema) noexcept {
    return Look(schema).schema(schema.index(), depth_max) != 0;
}

}  // namespace ossa::schema
