// Writes values as YAML that both YAML 1.1 and 1.2 read back as the same values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "schema/plan.hpp"

namespace ossa::validator {

// A mapping or list begins on a new line of its own, indented; a scalar continues the line. Ends with a newline.
void append_yaml(std::string& out, json::Value value, unsigned indent = 0);
// The same with the fills put into their objects; `pointer` is that of `value`.
void append_yaml(std::string& out, json::Value value, unsigned indent, const std::string& pointer,
                 const std::vector<schema::Fill>& fills);
// A scalar's text as YAML: plain where that is safe, else in double quotes.
std::string yaml_string(std::string_view text);

}  // namespace ossa::validator
