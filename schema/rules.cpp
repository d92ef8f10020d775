#include "schema/rules.hpp"

#include "kube/types/names.hpp"
#include "schema/rule_report.hpp"

namespace ossa::schema {
namespace {

using json::Value;
using kube::CauseType;
using kube::Severity;

// Children append up to 13 characters ("-capabilities") and have 63 in all.
constexpr std::size_t name_max = 50;
// The API server appends five characters.
constexpr std::size_t generate_name_max = name_max - 5;
// The name of a TenantQuota is the value of the label ossa.ai/tenant.
constexpr std::size_t quota_name_max = 63;

void report_name(Value name, const Where& metadata_at, std::string_view member, std::string_view rule,
                 kube::NameProblem problem, std::size_t length_max, Report& report) {
    if (!problem) {
        return;
    }
    const bool is_long = name.raw_string().size() > length_max;
    report.add(is_long ? CauseType::too_long : CauseType::invalid, rule, metadata_at.pointer({member}), name,
               is_long ? "must be at most " + std::to_string(length_max) + " characters" : std::string{*problem},
               is_long ? "the names of the objects made for it must fit into 63" : "");
}

void check_name(Value metadata, const Where& at, Report& report) {
    const auto [name, prefix] = pick(metadata, "name", "generateName");
    const std::string_view text = name.string_or("");
    const std::string_view start = prefix.string_or("");
    // A name that the API server made from generateName is judged by what the user wrote.
    const bool is_generated =
        !start.empty() && (text.empty() || (text.size() == start.size() + 5 && text.starts_with(start)));
    if (is_generated) {
        report_name(prefix, at, "generateName", "agent/name", kube::dns1035_prefix(start, generate_name_max),
                    generate_name_max, report);
    } else if (name.is_string()) {
        report_name(name, at, "name", "agent/name", kube::dns1035_label(text, name_max), name_max, report);
    }
}

// What may not change while it runs.
void check_update(Value spec, Value old, const Where& at, Report& report) {
    const Value id = spec.at("agent").at("id");
    const Value old_id = old.at("spec").at("agent").at("id");
    if (id.is_string() && old_id.is_string() && id.raw_string() != old_id.raw_string()) {
        report.add(CauseType::forbidden, "agent/id-changed", at.pointer({"agent", "id"}), id,
                   "cannot be changed, it was " + json::excerpt(old_id),
                   "make a new Agent with the new id and delete this one");
    }
    if (spec.at("rollout").at("onSpecChange").string_or("") != "Refuse" ||
        old.at("status").at("phase").string_or("") != "RolloutInProgress") {
        return;
    }
    const Value image = spec.at("agent").at("runtime").at("image");
    const Value old_image = old.at("spec").at("agent").at("runtime").at("image");
    if (image.as_string() != old_image.as_string()) {
        report.add(CauseType::forbidden, "agent/image-during-rollout", at.pointer({"agent", "runtime", "image"}), image,
                   "cannot be changed while a rollout runs, since rollout.onSpecChange is Refuse",
                   "wait, set rollout.abort, or set rollout.onSpecChange to Restart");
    }
}

}  // namespace

void check_agent(Value object, Value old, const RuleOptions& options, kube::Findings& out) {
    Report report{out, Severity::error, options.findings_max};
    const Where at{options.base_pointer};
    const Where spec_at{at, "spec"};
    const auto [metadata, spec] = pick(object, "metadata", "spec");
    if (!old.exists()) {
        check_name(metadata, Where{at, "metadata"}, report);
    }
    const auto [body, workload, scaling, rollout, mcp] = pick(spec, "agent", "workload", "scaling", "rollout", "mcp");
    check_body(body, Where{spec_at, "agent"}, options, report);
    check_workload(workload, Where{spec_at, "workload"}, report);
    check_scaling(scaling, Where{spec_at, "scaling"}, report);
    check_rollout(rollout, Where{spec_at, "rollout"}, report);
    if (mcp.is_object()) {
        const std::string_view own = metadata.at("namespace").string_or(options.namespace_name);
        check_mcp(mcp, Where{spec_at, "mcp"}, own, report);
    }
    if (old.exists()) {
        check_update(spec, old, spec_at, report);
    }
}

void check_agent_body(Value body, std::string_view pointer, const RuleOptions& options, kube::Findings& out) {
    Report report{out, Severity::error, options.findings_max};
    check_body(body, Where{pointer}, options, report);
}

void check_tenant_quota(Value object, Value old, kube::Findings& out) {
    Report report{out, Severity::error, RuleOptions{}.findings_max};
    const Where at{""};
    if (const Value name = object.at("metadata").at("name"); name.is_string() && !old.exists()) {
        report_name(name, Where{at, "metadata"}, "name", "tenantquota/name",
                    kube::dns1123_subdomain(name.raw_string(), quota_name_max), quota_name_max, report);
    }
    const Value hard = object.at("spec").at("resourceQuota").at("hard");
    const Where spec_at{at, "spec"};
    const Where quota_at{spec_at, "resourceQuota"};
    const Where hard_at{quota_at, "hard"};
    if (hard.exists() && !hard.is_object()) {
        report.add(CauseType::type_invalid, "tenantquota/resource-quota", hard_at.pointer(), hard,
                   "must be an object of quantities", R"(for example {requests.cpu: "10"})");
    }
    check_quantities(hard, hard_at, "tenantquota/resource-quota", report);
}

}  // namespace ossa::schema
