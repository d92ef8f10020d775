// Every rule id that a report can carry: those of the schema room's catalog, and those about files and sets of files.
#pragma once

#include <string_view>
#include <vector>

#include "schema/rule_catalog.hpp"

namespace ossa::validator {

// Sorted by id.
const std::vector<schema::RuleEntry>& all_rules();
const schema::RuleEntry* rule_of(std::string_view id);

}  // namespace ossa::validator
