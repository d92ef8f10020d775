#include "validator/examples.hpp"

#include "schema/plan.hpp"

namespace ossa::validator {
namespace {

constexpr std::uint64_t steps_max = 1'000'000;

void check_side(json::Value schema, json::Value examples, std::string_view side, const std::string& at,
                kube::Findings& warnings) {
    bool any = false;
    for (const json::Value example : examples.elements()) {
        any = any || example.at(side).exists();
    }
    if (!any || !schema.is_object()) {
        return;
    }
    // A schema that cannot be used has its own warning, agent/inline-schema.
    const auto plan = schema::Plan::compile(schema, {.unknown = schema::UnknownKeyword::ignore});
    if (!plan) {
        return;
    }
    std::size_t index = 0;
    for (const json::Value example : examples.elements()) {
        const std::string place = at + "/examples/" + std::to_string(index++) + "/" + std::string{side};
        const json::Value value = example.at(side);
        if (!value.exists()) {
            continue;
        }
        schema::RunResult result;
        plan->run(value, {.base_pointer = place, .errors_max = 1, .steps_max = steps_max}, result);
        if (result.out_of_steps || result.errors.empty()) {
            continue;
        }
        kube::Finding finding = std::move(result.errors.front());
        finding.message = "does not match the capability's own " + std::string{side} + "_schema: " + finding.message;
        finding.severity = kube::Severity::warning;
        finding.rule = "agent/example";
        warnings.push_back(std::move(finding));
    }
}

}  // namespace

void check_examples(json::Value body, std::string_view pointer, kube::Findings& warnings) {
    std::size_t index = 0;
    for (const json::Value capability : body.at("capabilities").elements()) {
        const std::string at = std::string{pointer} + "/capabilities/" + std::to_string(index++);
        const json::Value examples = capability.at("examples");
        if (examples.is_array() && !examples.empty()) {
            check_side(capability.at("input_schema"), examples, "input", at, warnings);
            check_side(capability.at("output_schema"), examples, "output", at, warnings);
        }
    }
}

}  // namespace ossa::validator
