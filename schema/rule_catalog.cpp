#include "schema/rule_catalog.hpp"

#include <algorithm>

namespace ossa::schema {
namespace {

constexpr auto error = kube::Severity::error;
constexpr auto warning = kube::Severity::warning;

constexpr RuleEntry entries[] = {
    {"agent/canary", error,
     "A rollout with strategy Canary moves requests to the new image step by step and goes back when it is worse. "
     "That needs steps, and rollback with all three limits: without a limit there is nothing to judge by.",
     "rollout:\n  strategy: Canary\n  steps: [{setWeight: 20}, {pause: 5m}, {setWeight: 100}]\n"
     "  rollback: {maxErrorRate: \"2%\", maxP99LatencyMs: 800, minRequestSample: 100}"},
    {"agent/dependency-version", error,
     "min_version and max_version of a required dependency are semantic versions (2.0.0): three numbers, optionally a "
     "prerelease and build metadata; no range operators and no leading v. The highest must not be below the lowest.",
     "min_version: \"1.2.0\""},
    {"agent/duplicate-capability", error,
     "Two capabilities of one agent have the same name, so a caller could not tell which is meant.",
     "give each capability a name of its own"},
    {"agent/duplicate-dependency", error,
     "One agent stands twice among the dependencies, in one list or in required and optional. Only one of the entries "
     "could hold.",
     "keep one entry for each agent_id"},
    {"agent/duplicate-env", error,
     "An environment variable is set twice. Kubernetes would take the last one, and the API server refuses such lists.",
     "keep one entry for each name"},
    {"agent/duplicate-tool", error,
     "A tool name stands twice in mcp.tools or in agent.bridge.mcp.tools. The same name in both is well: the lists are "
     "merged.",
     "keep one entry for each tool"},
    {"agent/health-check", error,
     "An http probe needs the absolute path that it asks for, and always asks the agent's own Pod, so a full URL is "
     "not "
     "taken. An exec probe needs its command. A port lies between 1 and 65535.",
     "health_check: {type: http, endpoint: /health, port: 8080}"},
    {"agent/id-changed", error,
     "agent.id names the agent to others and is written on its children, so it cannot change while the Agent lives.",
     "make a new Agent with the new id, move the callers, delete the old one"},
    {"agent/image", error,
     "runtime.image is no image reference that a container runtime could pull: host and port if any, lower-case "
     "repository, tag of at most 128 characters, sha256, sha384 or sha512 digest.",
     "image: registry.example:5000/team/scanner:1.2.0"},
    {"agent/image-during-rollout", error,
     "The image was changed while a rollout runs and rollout.onSpecChange is Refuse.",
     "wait until the rollout has ended, set rollout.abort: true, or set rollout.onSpecChange: Restart"},
    {"agent/image-latest", warning,
     "The image has no tag or the tag latest, and no digest: the next Pod may run something else than the last one, "
     "and "
     "a rollback would not bring the old program back.",
     "image: registry.example/team/scanner:1.2.0"},
    {"agent/image-missing", warning,
     "runtime.type is k8s or docker, but no image is named. The Agent is stored and listed; nothing will run "
     "(condition RuntimeManaged=False, reason ImageMissing).",
     "image: registry.example/team/scanner:1.2.0"},
    {"agent/image-required", error,
     "runtime.type is k8s or docker and no image is named. This cluster asks for one (--require-image).",
     "image: registry.example/team/scanner:1.2.0"},
    {"agent/inline-schema", warning,
     "An input_schema or output_schema written in place is no valid JSON Schema (draft-07). It is stored as it is, but "
     "callers that use it will fail.",
     "input_schema: {type: object, properties: {path: {type: string}}}"},
    {"agent/inline-schema-not-checked", warning,
     "The inline schemas of one request together are larger than what is checked at admission. ossa-validator checks "
     "them without that bound.",
     ""},
    {"agent/mcp-headers", error,
     "mcp.headersFrom reads Secrets of the agent's own namespace only; another namespace's Secret would hand its "
     "content "
     "to whoever may write Agents here.",
     "headersFrom: [{name: Authorization, secretKeyRef: {name: probe, key: header}}]"},
    {"agent/memory-unit", warning,
     "The memory is a fraction of a byte, since m means a thousandth. Mi (2^20 bytes) or M (10^6 bytes) is meant.",
     "memory: 512Mi"},
    {"agent/name", error,
     "metadata.name becomes part of the names of Services and other children: a DNS-1035 label (a-z, 0-9, '-', "
     "starting "
     "with a letter) of at most 50 characters; generateName at most 45. Judged when the Agent is created.",
     "metadata: {name: compliance-scanner}"},
    {"agent/quantity", error,
     "runtime.resources.cpu and .memory are Kubernetes quantities above zero: a number, then nothing, m, k, M, G, T or "
     "Ki, Mi, Gi, Ti.",
     "resources: {cpu: 500m, memory: 512Mi}"},
    {"agent/quota", error,
     "The change would take more than the Agent's TenantQuota leaves, or that TenantQuota does not exist. Only the "
     "webhook can tell, and only with --tenant-quotas=on; ossa-validator compares what files declare.",
     "spec: {tenantRef: team-search}"},
    {"agent/rollout-error-rate", error,
     "rollback.maxErrorRate is a share of requests, as a percentage or a fraction, from none to all.",
     "maxErrorRate: \"2%\""},
    {"agent/rollout-metrics", error,
     "rollout.metrics is either a preset or queries of your own, and then all three of them: a canary without one of "
     "the "
     "checks would be promoted unseen.",
     "metrics: {preset: traefik}"},
    {"agent/rollout-pause", error,
     "The pause of a rollout step is a Go duration above zero: numbers with units h, m, s, ms, us, ns.", "{pause: 5m}"},
    {"agent/rollout-step", error, "Each rollout step does one thing: setWeight or pause.",
     "steps: [{setWeight: 20}, {pause: 5m}, {setWeight: 100}]"},
    {"agent/rollout-weights", error,
     "The weights of a rollout never fall from step to step, and one step reaches 100, else the rollout could not end.",
     "steps: [{setWeight: 20}, {pause: 5m}, {setWeight: 100}]"},
    {"agent/scale-replicas", error,
     "The number given to kubectl scale is outside of what an Agent may have: 0 to 10000.",
     "kubectl scale agent compliance-scanner --replicas=3"},
    {"agent/scaling-metric", error,
     "scaling needs a metric to go by: metric and target together (the short form), or metrics as autoscaling/v2 has "
     "them.",
     "scaling: {minReplicas: 1, maxReplicas: 10, metric: queueDepth, target: 20}"},
    {"agent/scaling-range", error, "scaling.minReplicas must not be more than scaling.maxReplicas.",
     "scaling: {minReplicas: 1, maxReplicas: 10}"},
    {"agent/secret-literal", warning,
     "A token or password stands in the object as plain text: bot_token, a member of integration.auth.config or an "
     "environment variable whose name says so. Everyone who may read the Agent may read it, and so may every backup.",
     "env: [{name: API_TOKEN, valueFrom: {secretKeyRef: {name: api, key: token}}}]"},
    {"agent/self-dependency", error, "An agent cannot depend on itself: it would wait for ever.",
     "take the entry out of dependencies"},
    {"agent/unknown-field", warning,
     "No schema knows this member, so nothing reads it. Often it is a typing error or stands at the wrong place. Names "
     "that start with x- are yours and never warned about.",
     "rename it to the name that the hint gives, or to x-..."},
    {"agent/workload-resources", error,
     "workload.resources has requests and limits as a Container has them: quantities that are not negative, a request "
     "never above its limit.",
     "resources: {requests: {cpu: 500m}, limits: {cpu: \"1\"}}"},
    {"schema/anyOf", error, "The value satisfies none of the forms that the schema lists.", ""},
    {"schema/const", error, "The value is not the one that the schema prescribes.", ""},
    {"schema/contains", error, "The list lacks an item of the form that the schema asks for.", ""},
    {"schema/dependencies", error, "A member needs another one beside it.", ""},
    {"schema/enum", error,
     "The value is not one of those listed. Case, dashes and underscores count; the hint names the nearest.",
     "role: data_processing"},
    {"schema/exclusiveMaximum", error, "The number is not below its bound.", ""},
    {"schema/exclusiveMinimum", error, "The number is not above its bound.", ""},
    {"schema/false", error, "The schema allows no value here.", ""},
    {"schema/format", error,
     "The text does not have the form that the schema names. uri is an absolute URI with a scheme: /health and "
     "example.org are none.",
     "base_url: https://agents.example/scanner"},
    {"schema/maxItems", error, "The list is longer than the schema allows.", ""},
    {"schema/maxLength", error, "The text has more characters (Unicode code points) than allowed.", ""},
    {"schema/maxProperties", error, "The object has more members than allowed.", ""},
    {"schema/maximum", error, "The number is above its bound.", ""},
    {"schema/minItems", error, "The list is shorter than the schema asks for.", "capabilities: at least one"},
    {"schema/minLength", error, "The text has fewer characters (Unicode code points) than asked for.", ""},
    {"schema/minProperties", error, "The object has fewer members than asked for.", ""},
    {"schema/minimum", error, "The number is below its bound.", ""},
    {"schema/multipleOf", error, "The number is no multiple of what the schema names.", ""},
    {"schema/not", error, "The value has the form that the schema excludes.", ""},
    {"schema/oneOf", error,
     "The value must have exactly one of the forms that the schema lists. input_schema and output_schema are an object "
     "(the schema itself) or an absolute URI.",
     "input_schema: {type: object}"},
    {"schema/pattern", error,
     "The text does not match the expression in the schema. agent.id has a-z, 0-9 and '-' and starts and ends with a "
     "letter or digit; agent.version is a semantic version with three numbers.",
     "version: \"1.2.0\""},
    {"schema/required", error, "A member that must be there is missing.", ""},
    {"schema/type", error,
     "The value has another JSON type than the schema asks for. In YAML an unquoted 1.0 is a number and an empty value "
     "is null.",
     "ossaVersion: \"1.0\""},
    {"schema/uniqueItems", error, "The list has the same item twice.", ""},
    {"tenantquota/name", error,
     "The name of a TenantQuota becomes the value of the label ossa.ai/tenant on what its agents run: at most 63 "
     "characters.",
     "metadata: {name: team-search}"},
    {"tenantquota/resource-quota", error,
     "resourceQuota.hard has quantities that are not negative, as a native ResourceQuota has them.",
     "resourceQuota: {hard: {requests.cpu: \"10\"}}"},
};

static_assert(std::is_sorted(std::begin(entries), std::end(entries),
                             [](const RuleEntry& a, const RuleEntry& b) { return a.id < b.id; }));

}  // namespace

std::span<const RuleEntry> rule_catalog() noexcept {
    return entries;
}

const RuleEntry* find_rule(std::string_view id) noexcept {
    const auto* at =
        std::lower_bound(std::begin(entries), std::end(entries), id,
                         [](const RuleEntry& entry, std::string_view wanted) { return entry.id < wanted; });
    return at != std::end(entries) && at->id == id ? at : nullptr;
}

}  // namespace ossa::schema
