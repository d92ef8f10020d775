// Finding: one thing that is wrong, or worth a warning, in a user's object. A value, never an Error.
// The same finding becomes a Status cause and an admission warning in the webhook, and a line of the validator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace ossa::kube {

enum class Severity : std::uint8_t { error, warning };

// Reasons of Status.details.causes (apimachinery field.ErrorType).
enum class CauseType : std::uint8_t {
    invalid,        // FieldValueInvalid
    required,       // FieldValueRequired
    not_supported,  // FieldValueNotSupported
    duplicate,      // FieldValueDuplicate
    type_invalid,   // FieldValueTypeInvalid
    forbidden,      // FieldValueForbidden
    too_long,       // FieldValueTooLong
    not_found,      // FieldValueNotFound
};
std::string_view to_string(CauseType type) noexcept;

struct Finding {
    Severity severity = Severity::error;
    CauseType cause = CauseType::invalid;
    std::string rule;     // "schema/pattern", "agent/image"; every id is listed in schema/rule_catalog.cpp
    std::string pointer;  // RFC 6901, from the root of the object: "/spec/agent/id"
    std::string member;   // only for a missing member: its name; pointer is then the object that lacks it
    std::string found;    // excerpt of the value as JSON, "" when there is none
    std::string message;  // what is wrong, without field and value: "must match the pattern ^[a-z…"
    std::string hint;     // what mends it, "" when there is nothing better than the message
};
using Findings = std::vector<Finding>;

// "/spec/agent/capabilities/0/name" -> "spec.agent.capabilities[0].name"; names that are no identifiers are written
// as ["a.b/c"]. The root is "<root>". A token is an index when it is all digits (object members named so are rare).
std::string field_path(std::string_view pointer, std::string_view member = {});
// As apimachinery prints it, without the field: `Invalid value: "X": must match …` or `Required value: …`.
std::string cause_message(const Finding& finding);
// "spec.agent.id: Invalid value: …"
std::string to_line(const Finding& finding);

}  // namespace ossa::kube
