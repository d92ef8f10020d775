// Turns objects of other shapes into ours: agentrax.io/v1alpha1 AgentDeployment and TenantQuota, and bare OSSA 1.0
// documents. Pure. What could not be known is assumed, and each assumption is said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace ossa::validator {

struct ConvertOptions {
    std::string namespace_;  // "": as the object says, else none
    std::string tenant;      // "": as the object says, else none
};

struct Converted {
    bool known = false;  // false: nothing that can be converted
    std::string yaml;    // one document, without "---"
    std::vector<std::string> notes;
};

Converted convert(json::Value object, const ConvertOptions& options);

}  // namespace ossa::validator
