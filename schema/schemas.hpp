// Our own schemas: the texts embedded at build time, and one compiled plan of each.
//
// Everything is made at its first use, never changes and lives until the process ends, so any thread may use it.
// A schema that does not parse or compile is a bug of ours (OSSA_BUG_IF), never an Error. The first use of a plan is
// slow: a server calls warm_up() before it is ready.
#pragma once

#include <string_view>

#include "base/json.hpp"
#include "schema/plan.hpp"

namespace ossa::schema {

// A bare OSSA 1.0 document.
const Plan& ossa_plan();
// The `.spec` of an Agent: an OSSA document with agent.schema.json merged into it (RFC 7386).
const Plan& agent_spec_plan();
// The `.spec` of a TenantQuota.
const Plan& tenant_quota_spec_plan();
// Judges schemas that users write. `pattern` there is only text: nothing of the user's is executed.
const Plan& metaschema_plan();

// The plans that an admission server needs.
void warm_up();

// schema/ossa-1.0.schema.json as it was at build time.
std::string_view ossa_schema_text() noexcept;

json::Value ossa_schema();
json::Value agent_spec_schema();
json::Value agent_status_schema();
json::Value tenant_quota_spec_schema();
json::Value tenant_quota_status_schema();
json::Value metaschema();

}  // namespace ossa::schema
