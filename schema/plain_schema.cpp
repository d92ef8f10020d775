#include "schema/plain_schema.hpp"

#include <array>
#include <cstdint>

namespace ossa::schema {
namespace {

using json::Value;

// What the metaschema asks of a keyword's value, as far as a quick look can tell.
enum class Kind : std::uint8_t { other, text, number, count, flag, anything, schema, schemas, type, required, values, plan };

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

constexpr std::size_t slot_count = 128;
constexpr std::size_t slot_of(std::string_view name) {
    return (name.size() * 31 + static_cast<unsigned char>(name.front()) * 7 +
            static_cast<unsigned char>(name.back()) * 13) % slot_count;
}

// Keyword index + 1 by slot, collisions in the next free one.
constexpr std::array<std::uint8_t, slot_count> slots = [] {
    std::array<std::uint8_t, slot_count> out{};
    for (std::size_t i = 0; i < keywords.size(); ++i) {
        std::size_t slot = slot_of(keywords[i].name);
        while (out[slot] != 0) {
            slot = (slot + 1) % slot_count;
        }
        out[slot] = static_cast<std::uint8_t>(i + 1);
    }
    return out;
}();

Kind kind_of(std::string_view name) noexcept {
    if (name.empty()) {
        return Kind::other;
    }
    for (std::size_t slot = slot_of(name); slots[slot] != 0; slot = (slot + 1) % slot_count) {
        const Keyword& keyword = keywords[slots[slot] - 1U];
        if (keyword.name == name) {
            return keyword.kind;
        }
    }
    return Kind::other;
}

bool is_type_name(std::string_view name) noexcept {
    return name == "string" || name == "object" || name == "integer" || name == "number" || name == "boolean" ||
           name == "array" || name == "null";
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
            if (seen[i] == text) {
                return false;
            }
        }
        seen[n++] = text;
    }
    return true;
}

constexpr unsigned depth_max = 64;

bool is_plain(Value schema, unsigned depth) noexcept {
    if (!schema.is_object()) {
        return schema.is_boolean();
    }
    if (depth == 0) {
        return false;
    }
    for (const auto [name, value] : schema.members()) {
        bool good = true;
        switch (kind_of(name)) {
            case Kind::other:
            case Kind::anything: break;
            case Kind::text: good = value.is_string(); break;
            case Kind::number: good = value.is_number(); break;
            case Kind::count: good = value.tag() == 'l' && *value.as_int64() >= 0; break;
            case Kind::flag: good = value.is_boolean(); break;
            case Kind::type: good = value.is_string() && is_type_name(value.raw_string()); break;
            case Kind::required: good = is_short_set(value); break;
            case Kind::values: good = is_short_set(value) && !value.empty(); break;
            case Kind::schema: good = is_plain(value, depth - 1); break;
            case Kind::schemas:
                good = value.is_object();
                for (const auto [key, member] : value.members()) {
                    good = good && is_plain(member, depth - 1);
                }
                break;
            case Kind::plan: good = false; break;
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

}  // namespace

bool is_plain_schema(Value schema) noexcept { return is_plain(schema, depth_max); }

}  // namespace ossa::schema
