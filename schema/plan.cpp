#include "schema/plan.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "schema/text.hpp"

namespace ossa::schema {

using json::Type;
using json::Value;
using kube::CauseType;

namespace {

constexpr std::uint32_t none = UINT32_MAX;

// Type sets as bits. `integer` is a number that is whole; `number` contains it.
enum : std::uint8_t {
    t_null = 1,
    t_boolean = 2,
    t_number = 4,
    t_integer = 8,
    t_string = 16,
    t_array = 32,
    t_object = 64
};
constexpr std::uint8_t t_any = 0;

std::uint8_t bit_of(Value value) noexcept {
    switch (value.tag()) {
        case '{': return t_object;
        case '[': return t_array;
        case '"': return t_string;
        case 't':
        case 'f': return t_boolean;
        case 'n': return t_null;
        default: return t_number;
    }
}

// As bit_of, but what is written as an integer is t_integer and other numbers are t_number: for Node::accepts.
constexpr std::array<std::uint8_t, 256> written_bits = [] {
    std::array<std::uint8_t, 256> out{};
    out['{'] = t_object;
    out['['] = t_array;
    out['"'] = t_string;
    out['t'] = out['f'] = t_boolean;
    out['n'] = t_null;
    out['l'] = out['u'] = t_integer;
    out['d'] = t_number;
    return out;
}();

bool has_type(std::uint8_t mask, Value value) noexcept {
    const std::uint8_t bit = bit_of(value);
    return (mask & bit) != 0 || (bit == t_number && (mask & t_integer) != 0 && value.is_integer());
}

enum class Additional : std::uint8_t { unset, allowed, schema };

struct Property {
    std::string_view name;  // in the table's own schema document
    json::NameKey key;
    std::uint32_t node = 0;
    bool listed = true;  // false: only named in `required`
};

struct Default {
    std::uint32_t property = 0;
    std::string_view value;
};

struct Pattern {
    std::unique_ptr<re2::RE2> re;  // null: not executed
    std::string text;
};

struct Dependency {
    std::string_view name;
    std::vector<std::string_view> needs;
    std::uint32_t node = none;
};

// What only few nodes have; kept apart so that a Node stays small.
struct Rare {
    std::vector<std::pair<Pattern, std::uint32_t>> pattern_properties;
    std::vector<Dependency> dependencies;
    std::vector<std::uint32_t> one_of, any_of, all_of, tuple;
    std::uint32_t not_node = none, if_node = none, then_node = none, else_node = none;
    std::uint32_t property_names = none, contains = none;
    std::size_t properties_min = 0, properties_max = SIZE_MAX;
    std::optional<double> exclusive_minimum, exclusive_maximum, multiple_of;
    Value constant;
    std::vector<std::string_view> wide_required;  // required members that the node's mask has no bit for
    bool has_tuple = false;
    bool unique_items = false;
};

struct Node {
    std::uint8_t types = t_any;
    std::uint8_t accepts = 0;  // of these types (written_bits) every value is good, and needs no visit
    bool never = false;        // the schema `false`
    bool uri = false;
    bool any_members = false;  // nothing is said about an object's members: they need not be looked at
    Additional additional = Additional::unset;
    std::uint32_t additional_node = none;
    std::uint32_t first_property = 0, property_count = 0;
    std::uint32_t first_slot = 0, slot_mask = 0;  // open-addressing table over the properties
    std::uint32_t first_default = 0, default_count = 0;
    std::uint64_t required = 0;  // bit i: property i
    std::uint32_t items = none;
    std::size_t items_min = 0, items_max = SIZE_MAX;
    std::size_t length_min = 0, length_max = SIZE_MAX;
    std::optional<double> minimum, maximum;
    std::uint32_t pattern = none;
    std::uint32_t first_enum = 0, enum_count = 0;
    std::uint32_t rare = none;
    std::string_view says;  // x-ossa-says: a pattern in words
};

constexpr std::size_t mask_bits = 64;

}  // namespace

struct Plan::Table {
    json::Document schema;  // holds every name, default and enum value below
    std::vector<Node> nodes;
    std::vector<Property> properties;
    std::vector<std::uint32_t> slots;
    std::vector<Default> defaults;
    std::vector<std::string> default_texts;
    std::vector<Value> enums;
    std::vector<Pattern> patterns;
    std::vector<Rare> rares;
    std::multimap<std::string, std::string, std::less<>> places;  // property name -> pointer with * for items
    std::uint32_t root = 0;

    const Property* find(const Node& node, std::string_view name) const noexcept {
        if (node.property_count == 0) {
            return nullptr;
        }
        const json::NameKey key = json::NameKey::of(name);
        std::uint64_t slot = key.hash() >> 32U;
        for (;; ++slot) {
            const std::uint32_t index = slots[node.first_slot + (slot & node.slot_mask)];
            if (index == none) {
                return nullptr;
            }
            const Property& property = properties[node.first_property + index];
            if (property.key == key && (key.decides() || property.name == name)) {
                return &property;
            }
        }
    }
};

namespace {

// ---------------------------------------------------------------------------------------------------------- compile

class Compiler {
  public:
    Compiler(Plan::Table& table, const Plan::Options& options) : table_(table), options_(options) {}

    Result<void> compile() {
        const auto root = node_at("", table_.schema.root());
        if (!root) {
            return unexpected(root.error());
        }
        table_.root = *root;
        OSSA_CHECK(refuse_loops());
        for (Node& node : table_.nodes) {
            node.accepts = accepted_by_itself(node);
        }
        for (Node& node : table_.nodes) {
            if (node.rare != none) {
                node.accepts = accepted_by_one_branch(node);
            }
        }
        collect_places(*root, "", 0);
        return {};
    }

  private:
    using NodeResult = Result<std::uint32_t>;

    static tl::unexpected<Error> wrong(const std::string& pointer, std::string_view what) {
        return failure(ErrorCode::invalid, "schema at \"" + pointer + "\": " + std::string(what));
    }

    static std::string child(const std::string& pointer, std::string_view token) {
        std::string out = pointer + "/";
        json::append_pointer_token(out, token);
        return out;
    }

    // The node of the schema at a pointer; a `$ref` is an alias for its target.
    NodeResult node_at(const std::string& pointer, Value schema) {
        if (const auto known = by_pointer_.find(pointer); known != by_pointer_.end()) {
            return known->second;
        }
        if (++depth_ > options_.depth_max) {
            return wrong(pointer, "nested too deeply");
        }
        const auto made = make(pointer, schema);
        --depth_;
        return made;
    }

    NodeResult make(const std::string& pointer, Value schema) {
        const Value ref = schema.at("$ref");
        if (ref.exists()) {
            return follow(pointer, ref);
        }
        if (table_.nodes.size() >= options_.nodes_max) {
            return wrong(pointer, "too many subschemas");
        }
        const auto id = static_cast<std::uint32_t>(table_.nodes.size());
        table_.nodes.emplace_back();
        by_pointer_[pointer] = id;
        if (schema.is_boolean()) {
            table_.nodes[id].never = !*schema.as_bool();
            table_.nodes[id].any_members = true;
            return id;
        }
        if (!schema.is_object()) {
            return wrong(pointer, "must be an object or a boolean");
        }
        Node node;
        Rare rare;
        std::vector<Property> properties;
        for (const auto [keyword, value] : schema.members()) {
            OSSA_CHECK(read(keyword, value, pointer, schema, node, rare, properties));
        }
        OSSA_CHECK(lay_out(pointer, schema, node, rare, properties));
        if (is_rare(rare)) {
            node.rare = static_cast<std::uint32_t>(table_.rares.size());
            table_.rares.push_back(std::move(rare));
        }
        node.any_members = node.property_count == 0 && node.additional != Additional::schema &&
                           (node.rare == none || table_.rares[node.rare].pattern_properties.empty());
        table_.nodes[id] = node;
        return id;
    }

    NodeResult follow(const std::string& pointer, Value ref) {
        const auto target = ref.as_string();
        if (!target || !target->starts_with('#')) {
            return wrong(pointer, "$ref outside the document is not followed");
        }
        const std::string to{target->substr(1)};
        const Value schema = table_.schema.root().pointer(to);
        if (!schema.exists() || (!to.empty() && to.front() != '/')) {
            return wrong(pointer, "$ref " + std::string(*target) + " points nowhere");
        }
        if (!following_.insert({pointer, true}).second) {
            return wrong(pointer, "$ref leads back to itself");
        }
        const auto node = node_at(to, schema);
        following_.erase(pointer);
        if (node) {
            by_pointer_[pointer] = *node;
        }
        return node;
    }

    Result<std::uint8_t> types(const std::string& pointer, Value value) {
        static constexpr std::array<std::pair<std::string_view, std::uint8_t>, 7> names{{{"null", t_null},
                                                                                         {"boolean", t_boolean},
                                                                                         {"number", t_number},
                                                                                         {"integer", t_integer},
                                                                                         {"string", t_string},
                                                                                         {"array", t_array},
                                                                                         {"object", t_object}}};
        std::uint8_t mask = 0;
        const auto add = [&](Value name) {
            for (const auto& [text, bit] : names) {
                if (name.string_or("") == text) {
                    mask = static_cast<std::uint8_t>(mask | bit);
                    return true;
                }
            }
            return false;
        };
        if (value.is_array()) {
            for (const Value name : value.elements()) {
                if (!add(name)) {
                    return wrong(pointer, "unknown type");
                }
            }
        } else if (!add(value)) {
            return wrong(pointer, "unknown type");
        }
        if (mask == 0) {
            return wrong(pointer, "type lists nothing");
        }
        return mask;
    }

    Result<std::size_t> count(const std::string& pointer, Value value) {
        const auto n = value.as_int64();
        if (!n || *n < 0) {
            return wrong(pointer, "must be a whole number of at least 0");
        }
        return static_cast<std::size_t>(*n);
    }

    Result<double> number(const std::string& pointer, Value value) {
        const auto n = value.as_double();
        if (!n) {
            return wrong(pointer, "must be a number");
        }
        return *n;
    }

    Result<Pattern> pattern(const std::string& pointer, std::string_view text) {
        Pattern out{nullptr, std::string(text)};
        if (options_.run_patterns) {
            re2::RE2::Options re_options(re2::RE2::Quiet);
            re_options.set_max_mem(8 << 20);
            out.re = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), re_options);
            if (!out.re->ok()) {
                return wrong(pointer, "pattern: " + out.re->error());
            }
        }
        return out;
    }

    Result<std::vector<std::uint32_t>> list(const std::string& pointer, Value value) {
        if (!value.is_array() || value.empty()) {
            return wrong(pointer, "must be a non-empty list of schemas");
        }
        std::vector<std::uint32_t> out;
        std::size_t i = 0;
        for (const Value element : value.elements()) {
            OSSA_TRY(out.emplace_back(), node_at(child(pointer, std::to_string(i++)), element));
        }
        return out;
    }

    Result<void> read(std::string_view keyword, Value value, const std::string& at, Value schema, Node& node,
                      Rare& rare, std::vector<Property>& properties) {
        const std::string here = child(at, keyword);
        if (keyword == "type") {
            OSSA_TRY(node.types, types(here, value));
        } else if (keyword == "properties") {
            if (!value.is_object()) {
                return wrong(here, "must be an object");
            }
            for (const auto [name, property] : value.members()) {
                OSSA_TRY(const std::uint32_t id, node_at(child(here, name), property));
                properties.push_back({name, json::NameKey::of(name), id, true});
            }
        } else if (keyword == "required") {
            // laid out with the properties
        } else if (keyword == "additionalProperties") {
            if (value.is_boolean() && *value.as_bool()) {
                node.additional = Additional::allowed;
            } else {
                node.additional = Additional::schema;
                OSSA_TRY(node.additional_node, node_at(here, value));
            }
        } else if (keyword == "patternProperties") {
            for (const auto [text, property] : value.members()) {
                OSSA_TRY(Pattern compiled, pattern(here, text));
                OSSA_TRY(const std::uint32_t id, node_at(child(here, text), property));
                rare.pattern_properties.emplace_back(std::move(compiled), id);
            }
        } else if (keyword == "propertyNames") {
            OSSA_TRY(rare.property_names, node_at(here, value));
        } else if (keyword == "minProperties") {
            OSSA_TRY(rare.properties_min, count(here, value));
        } else if (keyword == "maxProperties") {
            OSSA_TRY(rare.properties_max, count(here, value));
        } else if (keyword == "dependencies") {
            for (const auto [name, needs] : value.members()) {
                Dependency dependency{.name = name, .needs = {}, .node = none};
                if (needs.is_array()) {
                    for (const Value need : needs.elements()) {
                        dependency.needs.push_back(need.string_or(""));
                    }
                } else {
                    OSSA_TRY(dependency.node, node_at(child(here, name), needs));
                }
                rare.dependencies.push_back(std::move(dependency));
            }
        } else if (keyword == "items") {
            if (value.is_array()) {
                rare.has_tuple = true;
                if (!value.empty()) {
                    OSSA_TRY(rare.tuple, list(here, value));
                }
                const Value rest = schema.at("additionalItems");
                if (rest.exists()) {
                    OSSA_TRY(node.items, node_at(child(at, "additionalItems"), rest));
                }
            } else {
                OSSA_TRY(node.items, node_at(here, value));
            }
        } else if (keyword == "additionalItems") {
            // read with a list of items; means nothing otherwise
        } else if (keyword == "contains") {
            OSSA_TRY(rare.contains, node_at(here, value));
        } else if (keyword == "minItems") {
            OSSA_TRY(node.items_min, count(here, value));
        } else if (keyword == "maxItems") {
            OSSA_TRY(node.items_max, count(here, value));
        } else if (keyword == "uniqueItems") {
            rare.unique_items = value.bool_or(false);
        } else if (keyword == "enum") {
            if (!value.is_array() || value.empty()) {
                return wrong(here, "must be a non-empty list");
            }
            node.first_enum = static_cast<std::uint32_t>(table_.enums.size());
            node.enum_count = static_cast<std::uint32_t>(value.size());
            for (const Value allowed : value.elements()) {
                table_.enums.push_back(allowed);
            }
        } else if (keyword == "const") {
            rare.constant = value;
        } else if (keyword == "pattern") {
            if (!value.is_string()) {
                return wrong(here, "must be a string");
            }
            OSSA_TRY(Pattern compiled, pattern(here, value.raw_string()));
            node.pattern = static_cast<std::uint32_t>(table_.patterns.size());
            table_.patterns.push_back(std::move(compiled));
        } else if (keyword == "format") {
            node.uri = value.string_or("") == "uri";
        } else if (keyword == "minLength") {
            OSSA_TRY(node.length_min, count(here, value));
        } else if (keyword == "maxLength") {
            OSSA_TRY(node.length_max, count(here, value));
        } else if (keyword == "minimum") {
            OSSA_TRY(node.minimum, number(here, value));
        } else if (keyword == "maximum") {
            OSSA_TRY(node.maximum, number(here, value));
        } else if (keyword == "exclusiveMinimum") {
            OSSA_TRY(rare.exclusive_minimum, number(here, value));
        } else if (keyword == "exclusiveMaximum") {
            OSSA_TRY(rare.exclusive_maximum, number(here, value));
        } else if (keyword == "multipleOf") {
            OSSA_TRY(rare.multiple_of, number(here, value));
            if (*rare.multiple_of <= 0) {
                return wrong(here, "must be above 0");
            }
        } else if (keyword == "oneOf") {
            OSSA_TRY(rare.one_of, list(here, value));
        } else if (keyword == "anyOf") {
            OSSA_TRY(rare.any_of, list(here, value));
        } else if (keyword == "allOf") {
            OSSA_TRY(rare.all_of, list(here, value));
        } else if (keyword == "not") {
            OSSA_TRY(rare.not_node, node_at(here, value));
        } else if (keyword == "if") {
            OSSA_TRY(rare.if_node, node_at(here, value));
        } else if (keyword == "then") {
            OSSA_TRY(rare.then_node, node_at(here, value));
        } else if (keyword == "else") {
            OSSA_TRY(rare.else_node, node_at(here, value));
        } else if (keyword == "x-ossa-says") {
            node.says = value.string_or("");
        } else if (options_.unknown == UnknownKeyword::refuse && !is_annotation(keyword)) {
            return wrong(here, "unknown keyword");
        }
        return {};
    }

    static bool is_annotation(std::string_view keyword) {
        static constexpr std::array<std::string_view, 12> names{
            "title",     "description", "$comment",         "$schema",         "$id",        "examples", "readOnly",
            "writeOnly", "default",     "contentMediaType", "contentEncoding", "definitions"};
        return keyword.starts_with("x-") || std::find(names.begin(), names.end(), keyword) != names.end();
    }

    static bool is_rare(const Rare& rare) { return !rare.one_of.empty() || has_more_than_one_of(rare); }
    static bool has_more_than_one_of(const Rare& rare) {
        return !rare.pattern_properties.empty() || !rare.dependencies.empty() || !rare.any_of.empty() ||
               !rare.all_of.empty() || rare.has_tuple || rare.not_node != none || rare.if_node != none ||
               rare.property_names != none || rare.contains != none || rare.properties_min != 0 ||
               rare.properties_max != SIZE_MAX || rare.exclusive_minimum || rare.exclusive_maximum ||
               rare.multiple_of || rare.constant.exists() || rare.unique_items || !rare.wide_required.empty();
    }

    // Required properties and those with defaults come first, so that one 64-bit mask tells which were seen.
    Result<void> lay_out(const std::string& pointer, Value schema, Node& node, Rare& rare,
                         std::vector<Property>& properties) {
        std::vector<std::string_view> required;
        for (const Value name : schema.at("required").elements()) {
            if (!name.is_string()) {
                return wrong(child(pointer, "required"), "must list names");
            }
            required.push_back(name.raw_string());
            const auto listed = std::find_if(properties.begin(), properties.end(),
                                             [&](const Property& p) { return p.name == name.raw_string(); });
            if (listed == properties.end()) {
                if (any_ == none) {
                    any_ = static_cast<std::uint32_t>(table_.nodes.size());
                    table_.nodes.emplace_back();
                }
                properties.push_back({name.raw_string(), json::NameKey::of(name.raw_string()), any_, false});
            }
        }
        const auto rank = [&](const Property& p) {
            const bool is_required = std::find(required.begin(), required.end(), p.name) != required.end();
            const bool has_default = schema.at("properties").at(p.name).at("default").exists();
            return is_required ? 0 : has_default ? 1 : 2;
        };
        std::stable_sort(properties.begin(), properties.end(),
                         [&](const Property& a, const Property& b) { return rank(a) < rank(b); });
        node.first_property = static_cast<std::uint32_t>(table_.properties.size());
        node.property_count = static_cast<std::uint32_t>(properties.size());
        node.first_default = static_cast<std::uint32_t>(table_.defaults.size());
        for (std::size_t i = 0; i < properties.size(); ++i) {
            const int group = rank(properties[i]);
            if (group == 0 && i < mask_bits) {
                node.required |= std::uint64_t{1} << i;
            } else if (group == 0) {
                rare.wide_required.push_back(properties[i].name);
            } else if (group == 1 && i >= mask_bits && options_.unknown == UnknownKeyword::refuse) {
                return wrong(pointer, "more than 64 required or defaulted members");
            }
            const Value fill = schema.at("properties").at(properties[i].name).at("default");
            if (fill.exists() && i < mask_bits) {
                table_.default_texts.push_back(json::to_text(fill));
                table_.defaults.push_back({static_cast<std::uint32_t>(i), {}});
                ++node.default_count;
            }
        }
        table_.properties.insert(table_.properties.end(), properties.begin(), properties.end());
        if (!properties.empty()) {
            const std::size_t size = std::bit_ceil(properties.size() * 2);
            node.first_slot = static_cast<std::uint32_t>(table_.slots.size());
            node.slot_mask = static_cast<std::uint32_t>(size - 1);
            table_.slots.resize(table_.slots.size() + size, none);
            for (std::uint32_t i = 0; i < properties.size(); ++i) {
                std::uint64_t slot = properties[i].key.hash() >> 32U;
                while (table_.slots[node.first_slot + (slot & node.slot_mask)] != none) {
                    ++slot;
                }
                table_.slots[node.first_slot + (slot & node.slot_mask)] = i;
            }
        }
        return {};
    }

    static std::uint8_t all_of_types(const Node& node) {
        std::uint8_t mask = t_null | t_boolean | t_number | t_integer | t_string | t_array | t_object;
        if (node.types != t_any) {
            mask = node.types;
        }
        return (mask & t_number) != 0 ? mask | t_integer : mask;
    }

    static std::uint8_t accepted_by_itself(const Node& node) {
        if (node.never || node.enum_count != 0 || node.rare != none) {
            return 0;
        }
        unsigned mask = all_of_types(node);
        if (node.length_min != 0 || node.length_max != SIZE_MAX || node.pattern != none || node.uri) {
            mask &= ~unsigned{t_string};
        }
        if (node.minimum || node.maximum) {
            mask &= ~unsigned{t_number | t_integer};
        }
        if (node.items != none || node.items_min != 0 || node.items_max != SIZE_MAX) {
            mask &= ~unsigned{t_array};
        }
        if (!node.any_members) {
            mask &= ~unsigned{t_object};
        }
        return static_cast<std::uint8_t>(mask);
    }

    // Of a oneOf between different types, and nothing else: what its branches accept by themselves.
    std::uint8_t accepted_by_one_branch(const Node& node) const {
        const Rare& rare = table_.rares[node.rare];
        if (has_more_than_one_of(rare)) {
            return 0;
        }
        Node rest = node;
        rest.rare = none;
        unsigned seen = 0;
        unsigned mask = 0;
        for (const std::uint32_t id : rare.one_of) {
            const Node& branch = table_.nodes[id];
            if (branch.types == t_any || (seen & all_of_types(branch)) != 0) {
                return 0;
            }
            seen |= all_of_types(branch);
            mask |= branch.rare == none ? branch.accepts : 0U;
        }
        return static_cast<std::uint8_t>(mask & accepted_by_itself(rest));
    }

    // A chain of subschemas that judge the same value and lead back to their start would run for ever.
    Result<void> refuse_loops() {
        std::vector<std::uint8_t> state(table_.nodes.size(), 0);  // 0 new, 1 on the way, 2 done
        for (std::uint32_t id = 0; id < table_.nodes.size(); ++id) {
            if (loops(id, state)) {
                return failure(ErrorCode::invalid, "schema: a $ref leads back to itself");
            }
        }
        return {};
    }

    bool loops(std::uint32_t id, std::vector<std::uint8_t>& state) {
        if (id == none || state[id] == 2) {
            return false;
        }
        if (state[id] == 1) {
            return true;
        }
        state[id] = 1;
        if (table_.nodes[id].rare != none) {
            const Rare& rare = table_.rares[table_.nodes[id].rare];
            for (const auto* group : {&rare.one_of, &rare.any_of, &rare.all_of}) {
                for (const std::uint32_t next : *group) {
                    if (loops(next, state)) {
                        return true;
                    }
                }
            }
            for (const std::uint32_t next : {rare.not_node, rare.if_node, rare.then_node, rare.else_node}) {
                if (loops(next, state)) {
                    return true;
                }
            }
            for (const Dependency& dependency : rare.dependencies) {
                if (loops(dependency.node, state)) {
                    return true;
                }
            }
        }
        state[id] = 2;
        return false;
    }

    // Where each listed member may stand, for "did you mean"; only our own schemas are asked, which are trees.
    void collect_places(std::uint32_t id, const std::string& pointer, unsigned depth) {
        if (options_.unknown != UnknownKeyword::refuse || depth > 16 || table_.places.size() > 2000) {
            return;
        }
        const Node& node = table_.nodes[id];
        for (std::uint32_t i = 0; i < node.property_count; ++i) {
            const Property& property = table_.properties[node.first_property + i];
            const std::string place = child(pointer, property.name);
            table_.places.emplace(std::string(property.name), place);
            collect_places(property.node, place, depth + 1);
        }
        if (node.items != none) {
            collect_places(node.items, pointer + "/*", depth + 1);
        }
    }

    Plan::Table& table_;
    const Plan::Options& options_;
    std::map<std::string, std::uint32_t> by_pointer_;
    std::map<std::string, bool> following_;
    std::uint32_t any_ = none;
    std::size_t depth_ = 0;
};

// -------------------------------------------------------------------------------------------------------------- run

// The way from the root to the value under judgement, on the stack: costs nothing until something is wrong.
struct Step {
    const Step* up;
    std::string_view name;
    std::size_t index;  // used when name.data() is null
};

constexpr std::size_t unknown_max = 1000;

std::string_view article(std::string_view type) {
    return type == "array" || type == "object" || type == "integer" ? "an " : type == "null" ? "" : "a ";
}

std::string type_words(std::uint8_t mask) {
    std::string out;
    static constexpr std::array<std::pair<std::uint8_t, std::string_view>, 7> names{{{t_object, "object"},
                                                                                     {t_array, "array"},
                                                                                     {t_string, "string"},
                                                                                     {t_integer, "integer"},
                                                                                     {t_number, "number"},
                                                                                     {t_boolean, "boolean"},
                                                                                     {t_null, "null"}}};
    for (const auto& [bit, name] : names) {
        if ((mask & bit) != 0) {
            out.append(out.empty() ? "" : " or ").append(article(name)).append(name);
        }
    }
    return out;
}

std::string number_words(double d) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), d).ptr};
}

class Runner {
  public:
    Runner(const Plan::Table& table, const RunOptions& options, RunResult& result)
        : table_(table), options_(options), result_(result) {}

    void run(Value instance) {
        const Step root{nullptr, {}, 0};
        visit(table_.root, instance, root, true);
    }

  private:
    // Frames of visit, all of a stack. Our own schemas need at most the depth of a document; a user's can chain more.
    static constexpr unsigned depth_max = 800;
    struct Depth {
        explicit Depth(unsigned& depth) : depth_(depth) { ++depth_; }
        ~Depth() { --depth_; }
        Depth(const Depth&) = delete;
        Depth& operator=(const Depth&) = delete;
        unsigned& depth_;
    };

    bool afford(std::uint64_t steps) {
        result_.steps += steps;
        if ((options_.steps_max != 0 && result_.steps > options_.steps_max) || depth_ > depth_max) {
            result_.out_of_steps = true;
        }
        return !result_.out_of_steps;
    }

    bool is_accepted(std::uint32_t id, Value value) {
        const std::uint8_t bit = written_bits[static_cast<unsigned char>(value.tag())];
        const bool yes = (table_.nodes[id].accepts & bit) != 0;
        result_.steps += yes ? 1 : 0;
        return yes;
    }

    // Judges one value. `report` false: only the verdict is wanted (a branch of oneOf), and the first error ends it.
    bool visit(std::uint32_t id, Value value, const Step& at, bool report) {
        if (!afford(1)) {
            return true;
        }
        const Depth depth{depth_};
        if (result_.errors.size() >= options_.errors_max) {
            return true;
        }
        const Node& node = table_.nodes[id];
        bool good = true;
        const auto fail = [&](CauseType cause, std::string_view keyword, auto&& words) {
            good = false;
            if (report) {
                add(cause, keyword, at, value, words());
                result_.errors.back().hint = hint(node, keyword, value);
            }
            return report;  // false: stop here
        };
        if (node.types != t_any && !has_type(node.types, value)) {
            if (!fail(CauseType::type_invalid, "type", [&] { return wrong_type(node, value); })) {
                return false;
            }
        }
        if (node.enum_count != 0 && !in_enum(node, value)) {
            if (!fail(CauseType::not_supported, "enum", [&] { return enum_words(node); })) {
                return false;
            }
        }
        if (node.never) {
            return fail(CauseType::forbidden, "false", [] { return std::string("must not be there"); });
        }
        switch (value.tag()) {
            case '{': good = (node.any_members || object(node, value, at, report)) && good; break;
            case '[': good = array(node, value, at, report) && good; break;
            case '"':
                if (node.length_max != SIZE_MAX || node.length_min != 0 || node.pattern != none || node.uri) {
                    good = string(node, value, at, report) && good;
                }
                break;
            case 'l':
            case 'u':
            case 'd':
                if (node.minimum || node.maximum) {
                    good = number(node, value, at, report) && good;
                }
                break;
            default: break;
        }
        if (node.rare != none && (good || report)) {
            good = rare(table_.rares[node.rare], value, at, report) && good;
        }
        return good;
    }

    bool object(const Node& node, Value value, const Step& at, bool report) {
        bool good = true;
        std::uint64_t seen = 0;
        const Rare* rare = node.rare == none ? nullptr : &table_.rares[node.rare];
        const bool may_be_unknown =
            options_.collect_unknown && report && node.property_count != 0 && node.additional == Additional::unset;
        for (const auto [name, member] : value.members()) {
            const Step step{&at, name, 0};
            const Property* property = table_.find(node, name);
            if (property != nullptr) {
                const auto index = static_cast<std::size_t>(property - &table_.properties[node.first_property]);
                if (index < mask_bits) {
                    seen |= std::uint64_t{1} << index;
                }
                good = (is_accepted(property->node, member) || visit(property->node, member, step, report)) && good;
                if (!property->listed) {
                    property = nullptr;
                }
            } else if (may_be_unknown && !name.starts_with("x-")) {
                note_unknown(node, name, member, step);
            }
            if (rare != nullptr) {
                bool matched = property != nullptr;
                for (const auto& [pattern, id] : rare->pattern_properties) {
                    if (pattern.re != nullptr && matches(*pattern.re, name)) {
                        matched = true;
                        good = visit(id, member, step, report) && good;
                    }
                }
                if (!matched && node.additional == Additional::schema && rare_patterns_run(*rare)) {
                    good = visit(node.additional_node, member, step, report) && good;
                }
            } else if (property == nullptr && node.additional == Additional::schema) {
                good = visit(node.additional_node, member, step, report) && good;
            }
            if (!good && !report) {
                return false;
            }
        }
        if ((node.required & ~seen) != 0) {
            good = false;
            for (std::uint64_t missing = node.required & ~seen; missing != 0 && report; missing &= missing - 1) {
                const auto index = static_cast<std::uint32_t>(std::countr_zero(missing));
                add_missing(table_.properties[node.first_property + index].name, at, value);
            }
        }
        if (options_.collect_fills && report) {
            for (std::uint32_t i = 0; i < node.default_count; ++i) {
                const Default& fill = table_.defaults[node.first_default + i];
                if ((seen >> fill.property & 1U) == 0) {
                    const Step step{&at, table_.properties[node.first_property + fill.property].name, 0};
                    result_.fills.push_back({pointer(step), fill.value});
                }
            }
        }
        return good;
    }

    // Not executed patterns leave it open which members are additional: those are then not judged.
    static bool rare_patterns_run(const Rare& rare) {
        return std::all_of(rare.pattern_properties.begin(), rare.pattern_properties.end(),
                           [](const auto& entry) { return entry.first.re != nullptr; });
    }

    bool array(const Node& node, Value value, const Step& at, bool report) {
        bool good = true;
        const Rare* rare = node.rare == none ? nullptr : &table_.rares[node.rare];
        const bool has_tuple = rare != nullptr && rare->has_tuple;
        if (node.items != none || has_tuple) {
            std::size_t i = 0;
            for (const Value element : value.elements()) {
                const Step step{&at, {}, i};
                const bool in_tuple = has_tuple && i < rare->tuple.size();
                const std::uint32_t id = in_tuple ? rare->tuple[i] : node.items;
                if (id != none && !is_accepted(id, element)) {
                    good = visit(id, element, step, report) && good;
                }
                if (!good && !report) {
                    return false;
                }
                ++i;
            }
        }
        if (node.items_min != 0 || node.items_max != SIZE_MAX) {
            const std::size_t n = value.size();
            if (n < node.items_min) {
                good = false;
                if (report) {
                    add(CauseType::invalid, "minItems", at, value, "must have at least " + items(node.items_min));
                }
            } else if (n > node.items_max) {
                good = false;
                if (report) {
                    add(CauseType::invalid, "maxItems", at, value, "must have at most " + items(node.items_max));
                }
            }
        }
        return good;
    }

    static std::string items(std::size_t n) { return std::to_string(n) + (n == 1 ? " item" : " items"); }

    bool string(const Node& node, Value value, const Step& at, bool report) {
        const std::string_view text = value.raw_string();
        bool good = true;
        const auto fail = [&](CauseType cause, std::string_view keyword, auto&& words) {
            good = false;
            if (report) {
                add(cause, keyword, at, value, words());
            }
        };
        if (node.length_min != 0 || node.length_max != SIZE_MAX) {
            // As many code points as bytes at the most: short texts need no counting.
            const bool count = text.size() > node.length_max || node.length_min > 1;
            const std::size_t length = count ? code_points(text) : text.size();
            if (length < node.length_min) {
                fail(CauseType::invalid, "minLength", [&] {
                    return node.length_min == 1
                               ? std::string("must not be empty")
                               : "must have at least " + std::to_string(node.length_min) + " characters";
                });
            }
            if (count && length > node.length_max) {
                fail(CauseType::too_long, "maxLength", [&] {
                    return "must have at most " + std::to_string(node.length_max) + " characters, has " +
                           std::to_string(length);
                });
            }
        }
        if (node.pattern != none) {
            const Pattern& pattern = table_.patterns[node.pattern];
            if (pattern.re != nullptr && !matches(*pattern.re, text)) {
                fail(CauseType::invalid, "pattern", [&] {
                    return node.says.empty() ? "must match the pattern " + pattern.text
                                             : "must be " + std::string(node.says);
                });
            }
        }
        if (node.uri && !is_absolute_uri(text)) {
            fail(CauseType::invalid, "format",
                 [] { return std::string("must be an absolute URI such as https://example.org/path"); });
        }
        return good;
    }

    bool number(const Node& node, Value value, const Step& at, bool report) {
        const double d = *value.as_double();
        bool good = true;
        if (node.minimum && d < *node.minimum) {
            good = false;
            if (report) {
                add(CauseType::invalid, "minimum", at, value, "must be at least " + number_words(*node.minimum));
            }
        }
        if (node.maximum && d > *node.maximum) {
            good = false;
            if (report) {
                add(CauseType::invalid, "maximum", at, value, "must be at most " + number_words(*node.maximum));
            }
        }
        return good;
    }

    bool rare(const Rare& rare, Value value, const Step& at, bool report) {
        bool good = true;
        const auto fail = [&](CauseType cause, std::string_view keyword, auto&& words) {
            good = false;
            if (report) {
                add(cause, keyword, at, value, words());
            }
        };
        const auto holds = [&](std::uint32_t id) { return visit(id, value, at, false); };
        for (const std::uint32_t id : rare.all_of) {
            good = visit(id, value, at, report) && good;
        }
        if (!rare.any_of.empty() && std::none_of(rare.any_of.begin(), rare.any_of.end(), holds)) {
            fail(CauseType::invalid, "anyOf", [&] { return "must be " + alternatives(rare.any_of); });
        }
        if (!rare.one_of.empty()) {
            const auto n = std::count_if(rare.one_of.begin(), rare.one_of.end(), holds);
            if (n != 1) {
                fail(CauseType::invalid, "oneOf",
                     [&] { return (n == 0 ? "must be " : "must be only one of: ") + alternatives(rare.one_of); });
            }
        }
        if (rare.not_node != none && holds(rare.not_node)) {
            fail(CauseType::invalid, "not", [] { return std::string("is what the schema excludes"); });
        }
        if (rare.if_node != none) {
            const std::uint32_t branch = holds(rare.if_node) ? rare.then_node : rare.else_node;
            if (branch != none) {
                good = visit(branch, value, at, report) && good;
            }
        }
        if (rare.constant.exists() && !json::equal(value, rare.constant)) {
            fail(CauseType::not_supported, "const", [&] { return "must be " + json::excerpt(rare.constant); });
        }
        switch (value.type()) {
            case Type::object: return rare_object(rare, value, at, report) && good;
            case Type::array: return rare_array(rare, value, at, report) && good;
            case Type::number: {
                const double d = *value.as_double();
                if (rare.exclusive_minimum && d <= *rare.exclusive_minimum) {
                    fail(CauseType::invalid, "exclusiveMinimum",
                         [&] { return "must be above " + number_words(*rare.exclusive_minimum); });
                }
                if (rare.exclusive_maximum && d >= *rare.exclusive_maximum) {
                    fail(CauseType::invalid, "exclusiveMaximum",
                         [&] { return "must be below " + number_words(*rare.exclusive_maximum); });
                }
                if (rare.multiple_of && std::isfinite(d / *rare.multiple_of) &&
                    std::trunc(d / *rare.multiple_of) != d / *rare.multiple_of) {
                    fail(CauseType::invalid, "multipleOf",
                         [&] { return "must be a multiple of " + number_words(*rare.multiple_of); });
                }
                return good;
            }
            default: return good;
        }
    }

    bool rare_object(const Rare& rare, Value value, const Step& at, bool report) {
        bool good = true;
        const auto fail = [&](std::string_view keyword, const std::string& words) {
            good = false;
            if (report) {
                add(CauseType::invalid, keyword, at, value, words);
            }
        };
        if (rare.properties_min != 0 || rare.properties_max != SIZE_MAX) {
            const std::size_t n = value.size();
            if (n < rare.properties_min) {
                fail("minProperties", "must have at least " + std::to_string(rare.properties_min) + " members");
            }
            if (n > rare.properties_max) {
                fail("maxProperties", "must have at most " + std::to_string(rare.properties_max) + " members");
            }
        }
        for (const std::string_view name : rare.wide_required) {
            if (!value.at(name).exists()) {
                good = false;
                if (report) {
                    add_missing(name, at, value);
                }
            }
        }
        if (rare.property_names != none) {
            for (const auto [name, member] : value.members()) {
                // The name itself is a string on the tape, just before its value.
                const Value as_value{value.tape(), value.strings(), member.index() - 1};
                const Step step{&at, name, 0};
                good = visit(rare.property_names, as_value, step, report) && good;
            }
        }
        for (const Dependency& dependency : rare.dependencies) {
            if (!value.at(dependency.name).exists()) {
                continue;
            }
            for (const std::string_view need : dependency.needs) {
                if (!value.at(need).exists()) {
                    fail("dependencies", std::string(dependency.name) + " needs " + std::string(need));
                }
            }
            if (dependency.node != none) {
                good = visit(dependency.node, value, at, report) && good;
            }
        }
        return good;
    }

    bool rare_array(const Rare& rare, Value value, const Step& at, bool report) {
        bool good = true;
        if (rare.contains != none) {
            bool found = false;
            std::size_t i = 0;
            for (const Value element : value.elements()) {
                const Step step{&at, {}, i++};
                found = found || visit(rare.contains, element, step, false);
            }
            if (!found) {
                good = false;
                if (report) {
                    add(CauseType::invalid, "contains", at, value, "has no item that the schema asks for");
                }
            }
        }
        if (rare.unique_items && value.size() > 1 && afford(value.next() - value.index())) {
            good = has_no_repetition(value);
            if (!good && report) {
                add(CauseType::duplicate, "uniqueItems", at, value, "must not repeat an item");
            }
        }
        return good;
    }

    static bool has_no_repetition(Value value) {
        constexpr std::size_t pairwise_max = 16;
        if (value.size() <= pairwise_max) {
            std::array<Value, pairwise_max> seen;
            std::size_t n = 0;
            for (const Value element : value.elements()) {
                for (std::size_t i = 0; i < n; ++i) {
                    if (json::equal(seen[i], element)) {
                        return false;
                    }
                }
                seen[n++] = element;
            }
            return true;
        }
        std::vector<std::string> texts;
        for (const Value element : value.elements()) {
            append_canonical(texts.emplace_back(), element);
        }
        std::sort(texts.begin(), texts.end());
        return std::adjacent_find(texts.begin(), texts.end()) == texts.end();
    }

    // Equal values have equal texts: members sorted, whole numbers as integers.
    static void append_canonical(std::string& out, Value value) {
        if (const auto whole = value.as_int64()) {
            out.append(std::to_string(*whole));
        } else if (value.is_object()) {
            std::vector<std::pair<std::string_view, Value>> sorted;
            for (const auto [name, member] : value.members()) {
                sorted.emplace_back(name, member);
            }
            std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
            out.push_back('{');
            for (const auto& [name, member] : sorted) {
                json::append_quoted(out, name);
                out.push_back(':');
                append_canonical(out, member);
                out.push_back(',');
            }
            out.push_back('}');
        } else if (value.is_array()) {
            out.push_back('[');
            for (const Value element : value.elements()) {
                append_canonical(out, element);
                out.push_back(',');
            }
            out.push_back(']');
        } else {
            json::append(out, value);
        }
    }

    static bool matches(const re2::RE2& re, std::string_view text) {
        return re.Match(re2::StringPiece(text.data(), text.size()), 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0);
    }

    bool in_enum(const Node& node, Value value) const {
        const Value* const allowed = table_.enums.data() + node.first_enum;
        if (value.is_string()) {
            const std::string_view text = value.raw_string();
            return std::any_of(allowed, allowed + node.enum_count,
                               [&](Value one) { return one.is_string() && one.raw_string() == text; });
        }
        return std::any_of(allowed, allowed + node.enum_count, [&](Value one) { return json::equal(one, value); });
    }

    std::string enum_words(const Node& node) const {
        std::string out = "supported values: ";
        for (std::uint32_t i = 0; i < node.enum_count && i < 40; ++i) {
            out.append(i == 0 ? "" : ", ");
            json::append(out, table_.enums[node.first_enum + i]);
        }
        return out;
    }

    // What mends it, where that can be told from the value alone.
    std::string hint(const Node& node, std::string_view keyword, Value value) const {
        if (keyword == "type" && value.is_null()) {
            return "give it a value or remove the key";
        }
        if (keyword == "type" && node.types == t_string && (value.is_number() || value.is_boolean())) {
            return "put it in quotes: \"" + json::to_text(value) + "\"";
        }
        if (keyword == "type" && value.is_string() && (node.types == t_boolean || node.types == t_integer)) {
            return "write it without quotes";
        }
        if (keyword == "enum" && value.is_string()) {
            std::vector<std::string_view> allowed;
            for (std::uint32_t i = 0; i < node.enum_count; ++i) {
                allowed.push_back(table_.enums[node.first_enum + i].string_or(""));
            }
            return did_you_mean(value.raw_string(), allowed);
        }
        return {};
    }

    static std::string wrong_type(const Node& node, Value value) {
        const std::string_view is = json::to_string(value.type());
        return "must be " + type_words(node.types) + ", not " + std::string(article(is)) + std::string(is);
    }

    std::string alternatives(const std::vector<std::uint32_t>& ids) const {
        std::string out;
        for (const std::uint32_t id : ids) {
            const Node& node = table_.nodes[id];
            std::string words = node.uri              ? std::string("an absolute URI")
                                : !node.says.empty()  ? std::string(node.says)
                                : node.types != t_any ? type_words(node.types)
                                                      : std::string("what another schema says");
            if (out.find(words) == std::string::npos) {
                out.append(out.empty() ? "" : " or ").append(words);
            }
        }
        return out;
    }

    std::string pointer(const Step& at) const {
        std::array<const Step*, 1024> way;  // not zeroed: only what is written is read
        std::size_t n = 0;
        for (const Step* step = &at; step->up != nullptr && n < way.size(); step = step->up) {
            way[n++] = step;
        }
        std::string out{options_.base_pointer};
        while (n > 0) {
            const Step& step = *way[--n];
            out.push_back('/');
            if (step.name.data() == nullptr) {
                out.append(std::to_string(step.index));
            } else {
                json::append_pointer_token(out, step.name);
            }
        }
        return out;
    }

    void add(CauseType cause, std::string_view keyword, const Step& at, Value value, std::string words) {
        kube::Finding finding;
        finding.cause = cause;
        finding.rule.append("schema/").append(keyword);
        finding.pointer = pointer(at);
        finding.found = json::excerpt(value);
        finding.message = std::move(words);
        result_.errors.push_back(std::move(finding));
    }

    void add_missing(std::string_view name, const Step& at, Value value) {
        add(CauseType::required, "required", at, value, "is missing");
        result_.errors.back().member = name;
    }

    void note_unknown(const Node& node, std::string_view name, Value member, const Step& step) {
        if (result_.unknown.size() >= unknown_max) {
            return;
        }
        std::vector<std::string_view> siblings;
        for (std::uint32_t i = 0; i < node.property_count; ++i) {
            siblings.push_back(table_.properties[node.first_property + i].name);
        }
        UnknownMember unknown{pointer(step), {}, json::excerpt(member)};
        if (const auto near = nearest_name(name, siblings)) {
            unknown.nearest = pointer(*step.up) + "/";
            json::append_pointer_token(unknown.nearest, *near);
        } else {
            const auto [first, last] = table_.places.equal_range(name);
            if (first != last && std::next(first) == last) {
                unknown.nearest = std::string(options_.base_pointer) + first->second;
            }
        }
        result_.unknown.push_back(std::move(unknown));
    }

    const Plan::Table& table_;
    const RunOptions& options_;
    RunResult& result_;
    unsigned depth_ = 0;
};

}  // namespace

void RunResult::clear() {
    errors.clear();
    fills.clear();
    unknown.clear();
    steps = 0;
    out_of_steps = false;
}

Plan::Plan(std::unique_ptr<const Table> table) : table_(std::move(table)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

Result<Plan> Plan::compile(json::Value schema, const Options& options) {
    auto table = std::make_unique<Table>();
    // The plan keeps its own copy, so that it may outlive the caller's document.
    const json::Limits limits{.bytes_max = SIZE_MAX, .depth_max = 1000, .values_max = UINT32_MAX};
    OSSA_TRY(table->schema, json::Document::from(json::to_text(schema), limits));
    OSSA_CHECK(Compiler(*table, options).compile());
    for (std::size_t i = 0; i < table->defaults.size(); ++i) {
        table->defaults[i].value = table->default_texts[i];
    }
    return Plan{std::move(table)};
}

void Plan::run(json::Value instance, const RunOptions& options, RunResult& result) const {
    Runner(*table_, options, result).run(instance);
}

std::size_t code_points(std::string_view utf8) noexcept {
    std::size_t n = 0;
    for (const char c : utf8) {
        n += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    }
    return n;
}

}  // namespace ossa::schema
