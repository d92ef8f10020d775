#include "engine/admission.hpp"

#include <algorithm>
#include <array>

#include "schema/rules.hpp"
#include "schema/schemas.hpp"

namespace ossa::engine {

using json::Value;
using kube::Operation;

namespace {

struct DoorPath {
    Door door;
    std::string_view path;
};
constexpr std::array<DoorPath, door_count> doors{{{Door::mutate_agent, "/mutate-ossa-ai-v1-agent"},
                                                  {Door::validate_agent, "/validate-ossa-ai-v1-agent"},
                                                  {Door::validate_scale, "/validate-ossa-ai-v1-agent-scale"},
                                                  {Door::validate_tenant_quota, "/validate-ossa-ai-v1-tenantquota"}}};

constexpr std::int64_t replicas_max = 10'000;

// Most important first: what leaks, then what will not run, then what surprises, then what is merely unknown.
int weight_of(const kube::Finding& warning) {
    static constexpr std::array<std::string_view, 7> order{"agent/secret-literal", "agent/image-missing",
                                                           "agent/memory-unit",    "agent/image-latest",
                                                           "agent/inline-schema",  "agent/inline-schema-not-checked",
                                                           "agent/unknown-field"};
    const auto at = std::find(order.begin(), order.end(), warning.rule);
    return static_cast<int>(at - order.begin());
}

void sort_warnings(kube::Findings& warnings) {
    std::stable_sort(warnings.begin(), warnings.end(),
                     [](const auto& a, const auto& b) { return weight_of(a) < weight_of(b); });
}

kube::Finding missing(std::string_view pointer, std::string_view member) {
    kube::Finding finding;
    finding.cause = kube::CauseType::required;
    finding.rule = "schema/required";
    finding.pointer = pointer;
    finding.member = member;
    finding.message = "is missing";
    return finding;
}

// Runs a plan over .spec. False when there is none to run over.
bool run_spec(const schema::Plan& plan, Value object, bool collect_fills, bool judge, schema::RunResult& run) {
    const Value spec = object.at("spec");
    if (!spec.exists() || spec.is_null()) {
        if (judge) {
            run.errors.push_back(missing("", "spec"));
        }
        return false;
    }
    plan.run(spec, {.base_pointer = "/spec", .collect_fills = collect_fills, .collect_unknown = judge}, run);
    return true;
}

void take_schema_errors(Judgement& out) {
    out.errors.insert(out.errors.end(), std::make_move_iterator(out.run.errors.begin()),
                      std::make_move_iterator(out.run.errors.end()));
    out.run.errors.clear();
}

unsigned depth_of(Value value) {
    unsigned depth = 0;
    unsigned deepest = 0;
    for (std::uint32_t i = value.index(); i < value.next(); ++i) {
        switch (static_cast<char>(value.tape()[i] >> 56U)) {
            case '{':
            case '[': deepest = std::max(deepest, ++depth); break;
            case '}':
            case ']': --depth; break;
            case 'l':
            case 'u':
            case 'd': ++i; break;
            default: break;
        }
    }
    return deepest;
}

void append_plain_denial(std::string& answer, std::string_view uid, int code, std::string_view reason,
                         std::string message, int retry_after_seconds = 0) {
    kube::Denial denial;
    denial.code = code;
    denial.reason = reason;
    denial.message = std::move(message);
    denial.retry_after_seconds = retry_after_seconds;
    kube::append_denied(answer, uid, denial, {}, {});
}

// And has a spec to put one into.
bool names_no_tenant(Value object) {
    const Value spec = object.at("spec");
    return spec.is_object() && !spec.at("tenantRef").exists();
}

std::string rules_of(const kube::Findings& errors) {
    std::string out;
    for (const kube::Finding& finding : errors) {
        if (out.find(finding.rule) == std::string::npos && out.size() < 400) {
            out.append(out.empty() ? "" : ",").append(finding.rule);
        }
    }
    return out;
}

// The review at hand and the answer being written.
class Review {
  public:
    Review(const kube::AdmissionRequest& request, Decision& decision, std::string& answer)
        : request_(request), decision_(decision), answer_(answer) {}

    void allow(std::string_view patch = {}, const kube::Findings& warnings = {}) {
        decision_.verdict = Verdict::allowed;
        decision_.warnings = warnings.size();
        decision_.patched = !patch.empty();
        kube::append_allowed(answer_, request_.uid, patch, kube::admission_warnings(warnings), {});
    }

    void deny(int code, std::string_view reason, std::string message) {
        decision_.verdict = Verdict::denied;
        decision_.reason = reason;
        append_plain_denial(answer_, request_.uid, code, reason, std::move(message));
    }

    void refuse(const QuotaRefusal& refusal) { engine::refuse(decision_, refusal, answer_); }

    // What must be granted before the yes that follows may go out.
    void ask(QuotaAsk ask) {
        if (ask.kind == QuotaAsk::Kind::nothing) {
            return;
        }
        ask.dry_run = request_.dry_run;
        ask.namespace_ = request_.namespace_;
        decision_.ask = std::move(ask);
    }

    void conclude(const Judgement& judgement) {
        if (judgement.errors.empty()) {
            allow({}, judgement.warnings);
            return;
        }
        decision_.verdict = Verdict::denied;
        decision_.reason = "Invalid";
        decision_.findings = judgement.errors.size();
        decision_.warnings = judgement.warnings.size();
        decision_.rules = rules_of(judgement.errors);
        const std::string_view name = name_of();
        kube::Denial denial;
        denial.message = kube::denial_message(request_.kind.kind, name, judgement.errors);
        denial.causes = &judgement.errors;
        denial.group = request_.kind.group;
        denial.kind = request_.kind.kind;
        denial.name = name;
        const kube::Annotations annotations{{"findings", std::to_string(judgement.errors.size())},
                                            {"rules", decision_.rules}};
        kube::append_denied(answer_, request_.uid, denial, kube::admission_warnings(judgement.warnings), annotations);
    }

  private:
    std::string_view name_of() const {
        const Value metadata = request_.object.at("metadata");
        for (const std::string_view candidate :
             {metadata.at("name").string_or(""), request_.name, metadata.at("generateName").string_or("")}) {
            if (!candidate.empty()) {
                return candidate;
            }
        }
        return "";
    }

    const kube::AdmissionRequest& request_;
    Decision& decision_;
    std::string& answer_;
};

void judge_scale(Value scale, Judgement& out) {
    const Value replicas = scale.at("spec").at("replicas");
    if (!replicas.exists()) {
        return;  // the API server drops a zero
    }
    const auto n = replicas.as_int64();
    if (!n || *n < 0 || *n > replicas_max) {
        kube::Finding finding;
        finding.rule = "agent/scale-replicas";
        finding.pointer = "/spec/replicas";
        finding.found = json::excerpt(replicas);
        finding.message = "must be a whole number from 0 to " + std::to_string(replicas_max);
        out.errors.push_back(std::move(finding));
    }
}

struct Expected {
    std::string_view resource, sub_resource, kind_group, kind;
};
Expected expected_at(Door door) noexcept {
    switch (door) {
        case Door::mutate_agent:
        case Door::validate_agent: return {"agents", "", "ossa.ai", "Agent"};
        case Door::validate_scale: return {"agents", "scale", "autoscaling", "Scale"};
        case Door::validate_tenant_quota: return {"tenantquotas", "", "ossa.ai", "TenantQuota"};
    }
    return {};
}

void judge(Door door, const kube::AdmissionRequest& request, const Policy& policy, Scratch& scratch, Review& review) {
    // Rules that hold at every door. Only creates and updates carry something to judge; a deletion is never stopped
    // here.
    if (request.operation != Operation::create && request.operation != Operation::update) {
        return review.allow();
    }
    const Expected expected = expected_at(door);
    if (request.sub_resource != expected.sub_resource && request.sub_resource == "status") {
        return review.allow();  // status is the controller's own
    }
    if (request.resource_group != "ossa.ai" || request.resource != expected.resource ||
        request.sub_resource != expected.sub_resource || request.kind.kind != expected.kind ||
        request.kind.group != expected.kind_group) {
        return review.deny(400, "BadRequest",
                           std::string(path_of(door)) + " judges " + std::string(expected.resource) +
                               (expected.sub_resource.empty() ? "" : "/" + std::string(expected.sub_resource)) +
                               ".ossa.ai of kind " + std::string(expected.kind) + ", not " +
                               std::string(request.resource) + "." + std::string(request.resource_group) + " of kind " +
                               std::string(request.kind.kind) + ": check the webhook configuration's rules");
    }
    if (!request.object.is_object()) {
        return review.deny(400, "BadRequest", "the review has no object to judge");
    }
    if (scratch.document.depth() > object_depth_max && depth_of(request.object) > object_depth_max) {
        return review.deny(422, "Invalid",
                           "the object is nested more than " + std::to_string(object_depth_max) + " levels deep");
    }
    // A spec change of an object in deletion is allowed unjudged, for whatever it asks will never run; but it may not
    // take more from its tenant.
    if (door != Door::validate_scale && in_deletion(request.object)) {
        if (door == Door::validate_agent) {
            const auto change =
                quota_ask_of(request.object, request.old_object, request.namespace_, policy.gpu_resource);
            if (change.refusal) {
                return review.refuse(*change.refusal);
            }
        }
        return review.allow();
    }
    Judgement& judgement = scratch.judgement;
    switch (door) {
        case Door::mutate_agent:
            default_agent(request.object, request.old_object, judgement.run, scratch.patch);
            if (policy.tenant_quotas && request.operation == Operation::create && names_no_tenant(request.object)) {
                review.ask({.kind = QuotaAsk::Kind::choose_tenant, .patch = scratch.patch});
            }
            return review.allow(scratch.patch);
        case Door::validate_agent:
            judge_agent(request.object, request.old_object, policy, judgement, request.namespace_);
            break;
        case Door::validate_scale: judge_scale(request.object, judgement); break;
        case Door::validate_tenant_quota: judge_tenant_quota(request.object, request.old_object, judgement); break;
    }
    if (policy.tenant_quotas && judgement.errors.empty() && door != Door::validate_tenant_quota) {
        if (door == Door::validate_scale) {
            review.ask(scale_ask_of(request.object, request.old_object, request.name, request.namespace_));
        } else {
            auto change = quota_ask_of(request.object, request.old_object, request.namespace_, policy.gpu_resource);
            if (change.refusal) {
                return review.refuse(*change.refusal);
            }
            review.ask(std::move(change.ask));
        }
    }
    review.conclude(judgement);
}

// A review that no Document holds: its uid is looked for in the text, so that the answer can still be a denial.
Decision answer_unreadable(std::string_view body, const Error& error, std::string& answer) {
    Decision decision;
    decision.reason = "BadRequest";
    decision.findings = 1;
    const std::string uid = json::find_string(body, {"request", "uid"}).value_or("");
    decision.uid = uid;
    decision.verdict = uid.empty() ? Verdict::malformed : Verdict::denied;
    append_plain_denial(answer, uid, uid.empty() ? 400 : 422, uid.empty() ? "BadRequest" : "Invalid",
                        "the review cannot be judged: " + error.message());
    return decision;
}

}  // namespace

std::optional<Door> door_of(std::string_view path) noexcept {
    for (const DoorPath& entry : doors) {
        if (entry.path == path) {
            return entry.door;
        }
    }
    return std::nullopt;
}

std::string_view path_of(Door door) noexcept {
    for (const DoorPath& entry : doors) {
        if (entry.door == door) {
            return entry.path;
        }
    }
    return "";
}

std::string_view to_string(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::allowed: return "allowed";
        case Verdict::denied: return "denied";
        case Verdict::malformed: return "malformed";
    }
    return "denied";
}

void Judgement::clear() {
    errors.clear();
    warnings.clear();
    run.clear();
}

void judge_agent(Value object, Value old, const Policy& policy, Judgement& out, std::string_view namespace_name) {
    const schema::RuleOptions options{.namespace_name = namespace_name, .require_image = policy.require_image};
    const bool has_spec = run_spec(schema::agent_spec_plan(), object, false, true, out.run);
    take_schema_errors(out);
    schema::check_agent(object, old, options, out.errors);
    if (!has_spec) {
        return;
    }
    schema::warn_agent(object, options, out.warnings);
    schema::warn_inline_schemas(object.at("spec").at("agent"), "/spec/agent", schema::metaschema_plan(),
                                inline_schema_steps_max, out.warnings);
    schema::warn_unknown(out.run.unknown, out.warnings);
    sort_warnings(out.warnings);
}

void judge_tenant_quota(Value object, Value old, Judgement& out) {
    run_spec(schema::tenant_quota_spec_plan(), object, false, true, out.run);
    take_schema_errors(out);
    schema::check_tenant_quota(object, old, out.errors);
    schema::warn_unknown(out.run.unknown, out.warnings);
}

void judge_ossa_document(Value document, const Policy& policy, Judgement& out) {
    const schema::RuleOptions options{.require_image = policy.require_image};
    schema::ossa_plan().run(document, {.base_pointer = "", .collect_fills = false, .collect_unknown = true}, out.run);
    take_schema_errors(out);
    const Value body = document.at("agent");
    schema::check_agent_body(body, "/agent", options, out.errors);
    schema::warn_agent_body(body, "/agent", options, out.warnings);
    schema::warn_inline_schemas(body, "/agent", schema::metaschema_plan(), inline_schema_steps_max, out.warnings);
    schema::warn_unknown(out.run.unknown, out.warnings);
    sort_warnings(out.warnings);
}

void default_agent(Value object, Value old, schema::RunResult& run, std::string& patch) {
    patch.clear();
    run_spec(schema::agent_spec_plan(), object, true, false, run);
    char before = '[';
    const auto add = [&](std::string_view pointer, auto&& append_value) {
        patch.push_back(before);
        before = ',';
        patch.append(R"({"op":"add","path":)");
        json::append_quoted(patch, pointer);
        patch.append(R"(,"value":)");
        append_value();
        patch.push_back('}');
    };
    for (const schema::Fill& fill : run.fills) {
        add(fill.pointer, [&] { patch.append(fill.value); });
    }
    // A tenant is not lost by leaving it out of an update.
    const Value tenant = old.at("spec").at("tenantRef");
    if (tenant.is_string() && names_no_tenant(object)) {
        add("/spec/tenantRef", [&] { json::append(patch, tenant); });
    }
    if (!patch.empty()) {
        patch.push_back(']');
    }
}

Decision admit(Door door, std::string_view body, json::Padding padding, const json::Limits& limits,
               const Policy& policy, Scratch& scratch, std::string& answer) {
    const auto parsed = scratch.document.parse(body, limits, padding);
    if (!parsed) {
        return answer_unreadable(body, parsed.error(), answer);
    }
    const auto request = kube::decode_admission_review(scratch.document.root());
    if (!request) {
        return answer_unreadable(body, request.error(), answer);
    }
    Decision decision;
    decision.uid = request->uid;
    decision.namespace_ = request->namespace_;
    decision.name = request->name;
    decision.user = request->user;
    decision.operation = request->operation;
    decision.dry_run = request->dry_run;
    scratch.judgement.clear();
    Review review(*request, decision, answer);
    judge(door, *request, policy, scratch, review);
    return decision;
}

namespace {

Decision deny_unjudged(std::string_view body, int code, std::string_view reason, std::string message,
                       std::string& answer) {
    Decision decision;
    decision.reason = reason;
    decision.uid = json::find_string(body, {"request", "uid"}).value_or("");
    append_plain_denial(answer, decision.uid, code, reason, std::move(message));
    return decision;
}

}  // namespace

void refuse(Decision& decision, const QuotaRefusal& refusal, std::string& answer) {
    decision.ask.reset();
    decision.verdict = Verdict::denied;
    decision.reason = refusal.reason;
    decision.findings = 1;
    decision.rules = refusal.code == 403 ? "agent/quota" : "";
    answer.clear();
    append_plain_denial(answer, decision.uid, refusal.code, refusal.reason, refusal.message,
                        refusal.retry_after_seconds);
}

void give_tenant(Decision& decision, std::string_view tenant, std::string& answer) {
    std::string patch = decision.ask ? decision.ask->patch : "";
    decision.ask.reset();
    decision.patched = true;
    if (patch.empty()) {
        patch.push_back('[');
    } else {
        patch.back() = ',';
    }
    patch.append(R"({"op":"add","path":"/spec/tenantRef","value":)");
    json::append_quoted(patch, tenant);
    patch.append("}]");
    answer.clear();
    kube::append_allowed(answer, decision.uid, patch, {}, {});
}

Decision refuse_late(std::string_view body, std::string& answer) {
    return deny_unjudged(body, 504, "Timeout", "the review reached ossa-webhook too late to be answered in time",
                         answer);
}

Decision fail_closed(std::string_view body, std::string& answer) {
    return deny_unjudged(body, 500, "InternalError",
                         "ossa-webhook failed while judging this request and denies it; see its log and ossa_bug_total",
                         answer);
}

}  // namespace ossa::engine
