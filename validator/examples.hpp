// Does each example of a capability match the schemas of the capability? Only here: the webhook never runs the schemas
// of users. The work is bounded by steps; what is beyond is passed over.
#pragma once

#include <string_view>

#include "base/json.hpp"
#include "kube/types/finding.hpp"

namespace ossa::validator {

// body: the value of the member `agent`; pointer leads there.
void check_examples(json::Value body, std::string_view pointer, kube::Findings& warnings);

}  // namespace ossa::validator
