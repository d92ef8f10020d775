// A quick yes for the schemas that people mostly write: types, properties, items, required, limits, texts.
// True only if the draft-07 metaschema accepts the schema too (a test holds this against the plan); false means "ask
// the plan", not "invalid". About ten times cheaper than the plan, which matters since every capability carries two
// schemas.
#pragma once

#include "base/json.hpp"

namespace ossa::schema {

bool is_plain_schema(json::Value schema) noexcept;

}  // namespace ossa::schema
