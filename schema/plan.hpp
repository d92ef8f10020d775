// Plan: a JSON Schema (draft-07) turned once into a flat table and then run over parsed documents.
//
// The valid path allocates nothing; every error is collected, in document order, with its instance pointer and keyword.
// Patterns run in RE2; `format: uri` is an absolute URI of RFC 3986; lengths count code points; 30.0 is an integer.
// Keywords: type required properties additionalProperties patternProperties propertyNames items additionalItems
// contains enum const pattern format minLength maxLength minItems maxItems uniqueItems minProperties maxProperties
// minimum maximum exclusiveMinimum exclusiveMaximum multipleOf oneOf anyOf allOf not if/then/else dependencies $ref
// (within the document) default, and the annotations title description $comment $schema $id examples definitions
// readOnly writeOnly contentMediaType contentEncoding x-* (x-ossa-says: a pattern in words). Formats asserted: uri
// (others are annotations). Immutable after compile; any number of threads may run one Plan.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "kube/types/finding.hpp"

namespace ossa::schema {

// What compile does with a keyword that it does not know. Our own schemas refuse; schemas of users ignore (draft-07
// says so).
enum class UnknownKeyword : std::uint8_t { refuse, ignore };

// A default that an existing object lacks.
struct Fill {
    std::string pointer;     // where it goes: "/spec/agent/capabilities/0/timeout_seconds"
    std::string_view value;  // JSON text, owned by the Plan
};

// A member that an object with listed properties does not list, where the schema does not say additionalProperties:
// true.
struct UnknownMember {
    std::string pointer;  // of the member itself
    std::string nearest;  // a known pointer that was probably meant, "" when none is near
    std::string value;    // excerpt
};

struct RunOptions {
    std::string_view base_pointer;  // put before every pointer: "/spec"
    bool collect_fills = false;
    bool collect_unknown = false;
    std::size_t errors_max = 1000;
    std::uint64_t steps_max = 0;  // 0: no limit; else the run stops there and says so
};

struct RunResult {
    kube::Findings errors;  // rule "schema/<keyword>"
    std::vector<Fill> fills;
    std::vector<UnknownMember> unknown;
    std::uint64_t steps = 0;
    bool out_of_steps = false;  // errors are then what was found so far, and no verdict
    void clear();
};

class Plan {
  public:
    struct Options {
        UnknownKeyword unknown = UnknownKeyword::refuse;
        std::size_t nodes_max = 10'000;  // compile refuses larger schemas
        std::size_t depth_max = 128;     // nesting of subschemas
        bool run_patterns = true;        // false: `pattern` and `patternProperties` are not executed (users' schemas)
    };
    // Errors: invalid, with the pointer into the schema and the keyword.
    static Result<Plan> compile(json::Value schema, const Options& options);
    static Result<Plan> compile(json::Value schema) { return compile(schema, Options{}); }

    Plan(Plan&&) noexcept;
    Plan& operator=(Plan&&) noexcept;
    ~Plan();

    // Appends to result (cleared by the caller, so that its memory can be reused).
    void run(json::Value instance, const RunOptions& options, RunResult& result) const;

    struct Table;

  private:
    explicit Plan(std::unique_ptr<const Table> table);
    std::unique_ptr<const Table> table_;
};

// An absolute URI as RFC 3986 writes it: scheme ":" hier-part ["?" query] ["#" fragment].
bool is_absolute_uri(std::string_view text) noexcept;
// Unicode code points of valid UTF-8.
std::size_t code_points(std::string_view utf8) noexcept;

}  // namespace ossa::schema
