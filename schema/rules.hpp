// Rules: what is wrong, or worth a warning, in an Agent or TenantQuota although its schema is satisfied.
// One implementation for ossa-webhook and ossa-validator; the contract is docs' api.md, "Rules beyond the schema".
//
// Pure and safe for any document: a member of a wrong type is the schema's finding and the rule is silent about it.
// Run the schema first and hand its findings on in `out`: a rule says nothing at a place where the schema has spoken.
// The valid path does not allocate (but for lists of more than 16 names). All is linear but for the search for repeated
// names, which sorts. User-given patterns are never executed here.
// Not judged here: what needs other objects (an id in use, dependency cycles, quota, a dependency that is not present).
// Every rule id is explained in schema/rule_catalog.cpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "kube/types/finding.hpp"
#include "schema/plan.hpp"

namespace ossa::schema {

struct RuleOptions {
    std::string_view base_pointer = {};    // of the object: "" for an object on its own, "/items/3" for one in a list
    std::string_view namespace_name = {};  // where the object lives, when its metadata does not say so
    bool require_image = false;            // no image for k8s or docker: an error instead of a warning
    std::size_t findings_max = 1000;       // one call adds no more than this
};

// An Agent {apiVersion, kind, metadata, spec}. `old` is the stored one on UPDATE, else the absent Value.
// The name is judged on CREATE only: it cannot change, and an old name must not block an update.
void check_agent(json::Value object, json::Value old, const RuleOptions& options, kube::Findings& out);
void warn_agent(json::Value object, const RuleOptions& options, kube::Findings& out);

// The part that a bare OSSA document has as well: `body` is the value of its member `agent`, `pointer` leads there
// ("/agent", "/spec/agent"). options.base_pointer does not count here.
void check_agent_body(json::Value body, std::string_view pointer, const RuleOptions& options, kube::Findings& out);
void warn_agent_body(json::Value body, std::string_view pointer, const RuleOptions& options, kube::Findings& out);

void check_tenant_quota(json::Value object, json::Value old, kube::Findings& out);

// One warning for each member that no schema knows; names that start with "x-" are the user's own and never warned
// about. Values are not shown: they may be secrets.
void warn_unknown(const std::vector<UnknownMember>& unknown, kube::Findings& out);

// Judges the inline schemas (objects) in capabilities[].input_schema and .output_schema against the plan of the
// draft-07 metaschema: one warning for each that is no schema, with its first error. steps_max bounds the work over all
// of them; when it is used up, one warning says from where on nothing was checked.
void warn_inline_schemas(json::Value body, std::string_view pointer, const Plan& metaschema, std::uint64_t steps_max,
                         kube::Findings& out);

}  // namespace ossa::schema
