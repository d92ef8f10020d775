// Hints that need the text as it was written: what an unquoted 1.0, yes or empty value has become, and how to write it.
#pragma once

#include <string>
#include <string_view>

#include "base/yaml.hpp"
#include "kube/types/finding.hpp"

namespace ossa::validator {

// A better hint for the finding at this spot, or its own. Only the hint differs from what the webhook says.
std::string hint_for(const kube::Finding& finding, const yaml::Spot& spot);

// The finding that a remark of the reader amounts to.
kube::Finding finding_of(const yaml::Remark& remark);

}  // namespace ossa::validator
