// The catalog of rules: every rule id that a finding may carry, what it means and how to mend it. Shown by
// `ossa-validator --explain` and in the docs; a unit test holds it complete.
#pragma once

#include <span>
#include <string_view>

#include "kube/types/finding.hpp"

namespace ossa::schema {

struct RuleEntry {
    std::string_view id;  // "agent/image"
    kube::Severity severity;
    std::string_view text;     // one paragraph: what is judged and why
    std::string_view example;  // what mends it, as a fragment of YAML; "" when the text says it all
};

// Sorted by id.
std::span<const RuleEntry> rule_catalog() noexcept;
// nullptr when there is no such rule.
const RuleEntry* find_rule(std::string_view id) noexcept;

}  // namespace ossa::schema
