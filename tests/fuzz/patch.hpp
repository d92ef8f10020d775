// A small JSON Patch applier for tests: what the API server does with our answer (RFC 6902: add, replace, remove,
// test). It knows nothing of how the patch was made.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "conformance/mutate.hpp"

namespace ossa::fuzz {

// Throws Complaint when an operation cannot be carried out.
void apply_patch(testing::Tree& document, json::Value patch);

// Throws Complaint when it is no base64.
std::string from_base64(std::string_view text);

}  // namespace ossa::fuzz
