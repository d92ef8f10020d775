// valijson's RapidJSON adapter redefines RAPIDJSON_ASSERT and must come before every other RapidJSON header.
#include <valijson/adapters/rapidjson_adapter.hpp>
//
#include <re2/re2.h>

#include <cmath>
#include <stdexcept>
#include <valijson/constraint_builder.hpp>
#include <valijson/constraints/concrete_constraints.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "conformance/oracle.hpp"

namespace ossa::oracle {
namespace {

using Adapter = valijson::adapters::RapidJsonAdapter;
using Context = std::vector<std::string>;

constexpr const char* pattern_keyword = "x-oracle-pattern";
constexpr const char* uri_keyword = "x-oracle-uri";

std::string uri_grammar() {
    const std::string pct = "%[0-9A-Fa-f]{2}";
    const std::string unreserved = "A-Za-z0-9._~-";
    const std::string sub = "!$&'()*+,;=";
    const auto many = [&](const std::string& more) { return "(?:[" + more + sub + unreserved + "]|" + pct + ")*"; };
    const std::string octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    const std::string ipv4 = octet + "(?:\\." + octet + "){3}";
    const std::string h16 = "[0-9A-Fa-f]{1,4}";
    const std::string ls32 = "(?:" + h16 + ":" + h16 + "|" + ipv4 + ")";
    const auto before = [&](int most) {  // [ *most( h16 ":" ) h16 ] "::"
        return "(?:(?:" + h16 + ":){0," + std::to_string(most) + "}" + h16 + ")?::";
    };
    const auto groups = [&](int n) { return n == 0 ? std::string() : "(?:" + h16 + ":){" + std::to_string(n) + "}"; };
    std::string ipv6 = groups(6) + ls32 + "|::" + groups(5) + ls32;
    ipv6 += "|(?:" + h16 + ")?::" + groups(4) + ls32;
    for (int lead = 1; lead <= 4; ++lead) {
        ipv6 += "|" + before(lead) + groups(4 - lead) + ls32;
    }
    ipv6 += "|" + before(5) + h16 + "|" + before(6);
    const std::string future = "[vV][0-9A-Fa-f]+\\.[:" + sub + unreserved + "]+";
    const std::string host = "(?:\\[(?:" + ipv6 + "|" + future + ")\\]|" + many("") + ")";
    const std::string authority = "(?:" + many(":") + "@)?" + host + "(?::[0-9]*)?";
    const std::string segment = many(":@");
    const std::string pchar = "(?:[:@" + sub + unreserved + "]|" + pct + ")";
    const std::string tail = "(?:/" + segment + ")*";
    const std::string hier =
        "(?://" + authority + tail + "|/(?:" + pchar + "+" + tail + ")?|" + pchar + "+" + tail + "|)";
    const std::string loose = many(":@/?");
    return "[A-Za-z][A-Za-z0-9+.-]*:" + hier + "(?:\\?" + loose + ")?(?:#" + loose + ")?";
}

// What both own constraints share: a test of strings, anything else passes.
class TextConstraint : public valijson::constraints::PolyConstraint {
  public:
    bool validate(const valijson::adapters::Adapter& target, const Context& context,
                  valijson::ValidationResults* results) const override {
        if (!target.isString() || holds(target.asString())) {
            return true;
        }
        if (results != nullptr) {
            results->pushError(context, "text is not as wanted");
        }
        return false;
    }

  private:
    virtual bool holds(const std::string& text) const = 0;
};

class PatternConstraint : public TextConstraint {
  public:
    explicit PatternConstraint(const std::string& pattern) : re_(std::make_shared<re2::RE2>(pattern, re2::RE2::Quiet)) {
        if (!re_->ok()) {
            throw std::runtime_error("pattern: " + re_->error());
        }
    }

  private:
    bool holds(const std::string& text) const override { return re2::RE2::PartialMatch(text, *re_); }
    valijson::constraints::Constraint* cloneInto(void* at) const override { return new (at) PatternConstraint(*this); }
    std::size_t sizeOf() const override { return sizeof(PatternConstraint); }
    std::shared_ptr<const re2::RE2> re_;
};

class UriConstraint : public TextConstraint {
  private:
    bool holds(const std::string& text) const override { return is_uri(text); }
    valijson::constraints::Constraint* cloneInto(void* at) const override { return new (at) UriConstraint(*this); }
    std::size_t sizeOf() const override { return sizeof(UriConstraint); }
};

struct PatternBuilder : valijson::ConstraintBuilder {
    valijson::constraints::Constraint* make(const valijson::adapters::Adapter& value) const override {
        return new PatternConstraint(value.asString());
    }
};

struct UriBuilder : valijson::ConstraintBuilder {
    valijson::constraints::Constraint* make(const valijson::adapters::Adapter&) const override {
        return new UriConstraint();
    }
};

using Allocator = rapidjson::Document::AllocatorType;

// Renames `pattern` and `format: uri`, at places of schemas only: a *property* may be called "pattern".
void rewrite(rapidjson::Value& schema, Allocator& allocator) {
    if (!schema.IsObject()) {
        return;
    }
    rapidjson::Value out(rapidjson::kObjectType);
    for (auto& member : schema.GetObject()) {
        const std::string keyword{member.name.GetString(), member.name.GetStringLength()};
        if (keyword == "properties" || keyword == "patternProperties" || keyword == "definitions") {
            for (auto& entry : member.value.GetObject()) {
                rewrite(entry.value, allocator);
            }
        } else if (member.value.IsArray() &&
                   (keyword == "oneOf" || keyword == "anyOf" || keyword == "allOf" || keyword == "items")) {
            for (auto& branch : member.value.GetArray()) {
                rewrite(branch, allocator);
            }
        } else if (keyword == "items" || keyword == "additionalProperties" || keyword == "not" || keyword == "if" ||
                   keyword == "then" || keyword == "else" || keyword == "contains") {
            rewrite(member.value, allocator);
        } else if (keyword == "pattern") {
            member.name.SetString(rapidjson::StringRef(pattern_keyword));
        } else if (keyword == "format") {
            if (std::string_view(member.value.GetString()) != "uri") {
                continue;
            }
            member.name.SetString(rapidjson::StringRef(uri_keyword));
        }
        out.AddMember(member.name, member.value, allocator);
    }
    schema.Swap(out);
}

// valijson takes texts as C strings, so NUL becomes another character that no pattern, enum or URI of ours allows
// either.
rapidjson::Value text_of(std::string_view text, Allocator& allocator) {
    std::string safe{text};
    for (char& c : safe) {
        c = c == '\0' ? '\1' : c;
    }
    return {safe.data(), static_cast<rapidjson::SizeType>(safe.size()), allocator};
}

// valijson takes a number for an integer when it is stored as one of 64 bits: whole numbers are stored so, cut to 2^53.
rapidjson::Value copy_of(json::Value value, Allocator& allocator) {
    switch (value.type()) {
        case json::Type::absent:
        case json::Type::null: return rapidjson::Value(rapidjson::kNullType);
        case json::Type::boolean: return rapidjson::Value(*value.as_bool());
        case json::Type::string: return text_of(*value.as_string(), allocator);
        case json::Type::number: {
            const double d = *value.as_double();
            if (std::trunc(d) != d) {
                return rapidjson::Value(d);
            }
            return rapidjson::Value(static_cast<std::int64_t>(std::fmax(-0x1p53, std::fmin(d, 0x1p53))));
        }
        case json::Type::array: {
            rapidjson::Value out(rapidjson::kArrayType);
            for (const json::Value element : value.elements()) {
                out.PushBack(copy_of(element, allocator), allocator);
            }
            return out;
        }
        case json::Type::object: {
            rapidjson::Value out(rapidjson::kObjectType);
            for (const auto [name, member] : value.members()) {
                out.AddMember(text_of(name, allocator), copy_of(member, allocator), allocator);
            }
            return out;
        }
    }
    return rapidjson::Value(rapidjson::kNullType);
}

std::string pointer_of(const Context& context) {
    std::string out;
    for (std::size_t i = 1; i < context.size(); ++i) {  // the first is "<root>", the others are "[name]"
        out.push_back('/');
        json::append_pointer_token(out, std::string_view(context[i]).substr(1, context[i].size() - 2));
    }
    return out;
}

bool is_inside(const Context& inner, const Context& outer) {
    return inner.size() >= outer.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

// Remarks that only say that something further down is wrong.
bool is_summary(std::string_view words) {
    return words.starts_with("Failed to validate item #") ||
           words.starts_with("Failed to validate against schema associated with p") ||
           words.starts_with("Failed to validate against additional properties schema") ||
           words.starts_with("Failed to validate against child schema #");
}

}  // namespace

struct Oracle::State {
    valijson::Schema schema;
    valijson::Validator validator;  // kept: a new one costs more than a judgement
};

Oracle::Oracle(std::string_view schema_text) : state_(std::make_unique<State>()) {
    rapidjson::Document text;
    text.Parse(schema_text.data(), schema_text.size());
    if (text.HasParseError()) {
        throw std::runtime_error("the schema is not JSON");
    }
    rewrite(text, text.GetAllocator());
    valijson::SchemaParser parser;  // owns the builders
    parser.addConstraintBuilder(pattern_keyword, new PatternBuilder);
    parser.addConstraintBuilder(uri_keyword, new UriBuilder);
    parser.populateSchema(Adapter(text), state_->schema);
}

Oracle::~Oracle() = default;

Opinion Oracle::judge(json::Value document) const {
    rapidjson::Document copy;
    const rapidjson::Value root = copy_of(document, copy.GetAllocator());
    valijson::ValidationResults results;
    Opinion out;
    out.valid = state_->validator.validate(state_->schema, Adapter(root), &results);
    std::vector<Context> leaves;
    for (const auto& error : results) {
        if (error.description.find("oneOf") != std::string::npos) {
            // What the branches said is told by the oneOf itself.
            std::erase_if(leaves, [&](const Context& leaf) { return is_inside(leaf, error.context); });
        }
        if (!is_summary(error.description)) {
            leaves.push_back(error.context);
        }
    }
    for (const Context& leaf : leaves) {
        out.leaves.insert(pointer_of(leaf));
    }
    return out;
}

bool is_uri(std::string_view text) {
    static const re2::RE2 grammar(uri_grammar());
    return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), grammar);
}

}  // namespace ossa::oracle
