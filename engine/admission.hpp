// Admission: one review in, one answer out. Pure: no clock, no log, no I/O; the webhook and ossa-validator share it.
//
// judge_* collects what is wrong with an object; admit() reads a whole AdmissionReview, judges what it holds and writes
// the answer. A review that cannot be decoded, or that is beyond the limits, is answered too (see Verdict::malformed).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "engine/quota_ask.hpp"
#include "kube/types/admission.hpp"
#include "schema/plan.hpp"

namespace ossa::engine {

// Where a review came in; one door for each path of the webhook.
enum class Door : std::uint8_t { mutate_agent, validate_agent, validate_scale, validate_tenant_quota };
inline constexpr std::size_t door_count = 4;
std::optional<Door> door_of(std::string_view path) noexcept;
std::string_view path_of(Door door) noexcept;

// How strict the installation is.
struct Policy {
    bool require_image = false;  // --require-image: an image-less k8s/docker Agent is an error
    bool tenant_quotas = false;  // decisions say what to ask of the TenantQuotas
    std::string gpu_resource{default_gpu_resource};
};

// Depth of an Agent from its own root; a whole review may be a little deeper (json::Limits::depth_max).
inline constexpr unsigned object_depth_max = 250;
// Judging the inline schemas of one request may take this many steps; beyond it they are "not checked".
inline constexpr std::uint64_t inline_schema_steps_max = 100'000;

// What was found in one object. Reused from one request to the next.
struct Judgement {
    kube::Findings errors;
    kube::Findings warnings;  // most important first
    schema::RunResult run;    // of the schema; run.fills holds the defaults when asked for
    void clear();
};

// object: the whole object with apiVersion, kind, metadata and spec; old: the stored one on an update, else absent.
// namespace_name: where it goes, when its metadata does not say so yet.
void judge_agent(json::Value object, json::Value old, const Policy& policy, Judgement& out,
                 std::string_view namespace_name = {});
void judge_tenant_quota(json::Value object, json::Value old, Judgement& out);
// A bare OSSA 1.0 document: the schema, the rules that concern its body, the warnings that need no cluster.
void judge_ossa_document(json::Value document, const Policy& policy, Judgement& out);
// The JSONPatch that writes the defaults into an Agent, "" when nothing is missing. Judges nothing.
void default_agent(json::Value object, json::Value old, schema::RunResult& run, std::string& patch);

enum class Verdict : std::uint8_t {
    allowed,
    denied,
    malformed,  // answered with HTTP 400: no review that could be answered under its uid
};
std::string_view to_string(Verdict verdict) noexcept;

// For metrics and logs: what was decided and why, in words of a fixed vocabulary.
struct Decision {
    Verdict verdict = Verdict::denied;
    // "", Invalid, BadRequest, Timeout, InternalError; of a quota Forbidden, TooManyRequests, Conflict
    std::string_view reason = "";
    kube::Operation operation = kube::Operation::unknown;
    bool dry_run = false;
    bool patched = false;
    std::size_t findings = 0;
    std::size_t warnings = 0;
    std::string uid, namespace_, name, user;
    std::string rules;  // ids of the rules that denied, comma separated
    // The answer says yes, but may go out only when this was granted; see refuse() and give_tenant().
    std::optional<QuotaAsk> ask;
};

// Memory that one worker keeps between requests.
struct Scratch {
    json::Document document;
    Judgement judgement;
    std::string patch;
};

// Judges the review in `body` and appends the answer. Throws only for bugs of ours.
Decision admit(Door door, std::string_view body, json::Padding padding, const json::Limits& limits,
               const Policy& policy, Scratch& scratch, std::string& answer);

// The ask of an allowed decision was refused: `answer` is written anew.
void refuse(Decision& decision, const QuotaRefusal& refusal, std::string& answer);
// A creation gets the tenant that was found for it, together with its defaults.
void give_tenant(Decision& decision, std::string_view tenant, std::string& answer);

// The answer when the caller's time is up before judging began: a denial with code 504.
Decision refuse_late(std::string_view body, std::string& answer);
// The answer when judging itself failed (a bug): a denial with code 500 under the review's uid, if one can be read.
Decision fail_closed(std::string_view body, std::string& answer);

}  // namespace ossa::engine
