#include "schema/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "schema/plan.hpp"
#include "schema/rule_catalog.hpp"

using namespace ossa;
using namespace ossa::schema;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

// An Agent that uses every member that a rule looks at, and breaks none.
constexpr std::string_view full_agent = R"({
"apiVersion":"ossa.ai/v1","kind":"Agent","metadata":{"name":"scanner","namespace":"agents"},
"spec":{"ossaVersion":"1.0","tenantRef":"team",
 "agent":{"id":"scanner","name":"Scanner","version":"1.2.0","role":"compliance",
  "runtime":{"type":"k8s","image":"registry.example/team/scanner:1.2.0","replicas":3,
   "resources":{"cpu":"500m","memory":"512Mi","gpu":true},
   "health_check":{"type":"http","endpoint":"/health","port":8080,"command":["/bin/check"]}},
  "capabilities":[
   {"name":"scan","description":"d","input_schema":{"type":"object"},"output_schema":"https://x.example/s"},
   {"name":"fix","description":"d","input_schema":{"type":"object"},"output_schema":{"type":"object"}}],
  "integration":{"protocol":"mcp","auth":{"type":"jwt","config":{"token_url":"https://x.example/t","audience":"a"}}},
  "dependencies":{"required":[{"agent_id":"store","min_version":"1.0.0","max_version":"2.0.0"},
                              {"agent_id":"mail","min_version":"1.0.0"}],
                  "optional":[{"agent_id":"extra"},{}]},
  "bridge":{"mcp":{"enabled":true,"tools":[{"name":"scan_tool"},{"name":"fix_tool"}]},
            "aiflow":{"social_platforms":{"telegram":{"enabled":true,"bot_token":"${BOT_TOKEN}"}}}}},
 "workload":{"port":8080,"env":[{"name":"MODE","value":"fast"},{"name":"API_TOKEN","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],
  "resources":{"requests":{"cpu":"500m","memory":"512Mi"},"limits":{"cpu":1,"memory":"1Gi"}}},
 "scaling":{"minReplicas":1,"maxReplicas":5,"metric":"queueDepth","target":10,"metrics":[{"type":"Resource"}]},
 "rollout":{"strategy":"Canary","steps":[{"setWeight":20},{"pause":"5m"},{"setWeight":100}],
  "rollback":{"maxErrorRate":"2%","maxP99LatencyMs":800,"minRequestSample":100},
  "onSpecChange":"Refuse","metrics":{"preset":"traefik"}},
 "route":{"path":"/scan"},
 "mcp":{"expose":true,"tools":["scan_tool","other"],"headersFrom":[{"name":"Authorization","secretKeyRef":{"name":"s","key":"k"}}]}}})";

json::Document document(std::string_view text) {
    auto parsed = json::Document::from(text, {.bytes_max = std::size_t{64} << 20});
    EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message());
    return parsed ? std::move(*parsed) : json::Document{};
}

// The full Agent with a merge patch (RFC 7386) over its .spec.
json::Document agent(std::string_view spec_patch = "{}") {
    const json::Document patch = document(R"({"spec":)" + std::string(spec_patch) + "}");
    return document(json::merge_patch(document(full_agent).root(), patch.root()));
}

std::string place(const kube::Finding& finding) {
    return finding.rule + " " + finding.pointer + (finding.member.empty() ? "" : " +" + finding.member);
}

std::vector<std::string> places(const kube::Findings& findings) {
    std::vector<std::string> out;
    for (const kube::Finding& finding : findings) {
        out.push_back(place(finding));
        EXPECT_NE(find_rule(finding.rule), nullptr) << finding.rule;
        EXPECT_FALSE(finding.message.empty()) << finding.rule;
    }
    return out;
}

using Places = std::vector<std::string>;

// The full Agent with the patch breaks exactly these rules at these places.
kube::Findings check(std::string_view spec_patch, const Places& want, const RuleOptions& options = {}) {
    const json::Document object = agent(spec_patch);
    kube::Findings found;
    check_agent(object.root(), {}, options, found);
    EXPECT_EQ(places(found), want) << spec_patch;
    return found;
}

kube::Findings check_warnings(std::string_view spec_patch, const Places& want, const RuleOptions& options = {}) {
    const json::Document object = agent(spec_patch);
    kube::Findings found;
    warn_agent(object.root(), options, found);
    EXPECT_EQ(places(found), want) << spec_patch;
    for (const kube::Finding& finding : found) {
        EXPECT_EQ(finding.severity, kube::Severity::warning);
    }
    return found;
}

// An update from one patched Agent to another breaks exactly these.
void check_update(std::string_view old_patch, std::string_view new_patch, std::string_view phase, const Places& want) {
    const json::Document before = agent(old_patch);
    const json::Document status = document(R"({"status":{"phase":")" + std::string(phase) + R"("}})");
    const json::Document old = document(json::merge_patch(before.root(), status.root()));
    const json::Document object = agent(new_patch);
    kube::Findings found;
    check_agent(object.root(), old.root(), {}, found);
    EXPECT_EQ(places(found), want) << old_patch << " -> " << new_patch;
}

void check_name(std::string_view metadata, const Places& want) {
    const json::Document object = document(R"({"metadata":)" + std::string(metadata) + R"(,"spec":{}})");
    kube::Findings found;
    check_agent(object.root(), {}, {}, found);
    EXPECT_EQ(places(found), want) << metadata;
}

std::string body(std::string_view patch) {
    return R"({"agent":)" + std::string(patch) + "}";
}
std::string runtime(std::string_view patch) {
    return body(R"({"runtime":)" + std::string(patch) + "}");
}

double micros_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST(Rules, AGoodAgentHasNeitherErrorsNorWarnings) {
    check("{}", {});
    check_warnings("{}", {});
}

TEST(Rules, TheNameLeavesRoomForSuffixes) {
    check_name(R"({"name":"a"})", {});
    check_name(R"({"name":")" + std::string(50, 'a') + R"("})", {});
    check_name(R"({"name":")" + std::string(51, 'a') + R"("})", {"agent/name /metadata/name"});
    check_name(R"({"name":"1a"})", {"agent/name /metadata/name"});
    check_name(R"({"name":"a.b"})", {"agent/name /metadata/name"});
    check_name(R"({"name":""})", {"agent/name /metadata/name"});
    check_name(R"({"generateName":"scan-"})", {});
    check_name(R"({"name":"","generateName":"scan-"})", {});
    check_name(R"({"generateName":")" + std::string(45, 'a') + R"("})", {});
    check_name(R"({"generateName":")" + std::string(46, 'a') + R"("})", {"agent/name /metadata/generateName"});
    check_name(R"({"generateName":"1-"})", {"agent/name /metadata/generateName"});
    check_name(R"({"name":"a.b-abcde","generateName":"a.b-"})", {"agent/name /metadata/generateName"});
    check_name(R"({"name":"good","generateName":"Bad-"})", {});
    check_name(R"({"name":null})", {});
    check_name("{}", {});
}

TEST(Rules, ANameFromBeforeTheRuleDoesNotBlockAnUpdate) {
    const json::Document object = document(R"({"metadata":{"name":"1.2"},"spec":{}})");
    kube::Findings found;
    check_agent(object.root(), object.root(), {}, found);
    EXPECT_THAT(found, IsEmpty());
}

TEST(Rules, TheImageIsAReferenceThatARuntimePulls) {
    const auto found =
        check(runtime(R"({"image":"https://R.example/App:1"})"), {"agent/image /spec/agent/runtime/image"});
    EXPECT_EQ(found[0].hint, R"(write "r.example/app:1")");
    check(runtime(R"({"image":""})"), {"agent/image /spec/agent/runtime/image"});
    check(runtime(R"({"image":"{{ .Values.image }}"})"), {"agent/image /spec/agent/runtime/image"});
    check(runtime(R"({"image":")" + std::string(1'000'000, 'a') + R"("})"), {"agent/image /spec/agent/runtime/image"});
    check(runtime(R"({"image":null})"), {});
}

TEST(Rules, AnImageIsAskedForOnlyWhereSomethingRuns) {
    const RuleOptions strict{.require_image = true};
    check(runtime(R"({"image":null})"), {"agent/image-required /spec/agent/runtime +image"}, strict);
    check(runtime(R"({"image":null,"type":"docker"})"), {"agent/image-required /spec/agent/runtime +image"}, strict);
    check(runtime(R"({"image":null,"type":"local"})"), {}, strict);
    check_warnings(runtime(R"({"image":null})"), {"agent/image-missing /spec/agent/runtime +image"});
    check_warnings(runtime(R"({"image":null})"), {}, strict);
    check_warnings(runtime(R"({"image":null,"type":"edge"})"), {});
}

TEST(Rules, CpuAndMemoryArePositiveQuantities) {
    check(runtime(R"({"resources":{"cpu":"0","memory":"-1Gi"}})"),
          {"agent/quantity /spec/agent/runtime/resources/cpu", "agent/quantity /spec/agent/runtime/resources/memory"});
    const auto found = check(
        runtime(R"({"resources":{"cpu":"2 cores","memory":"512MB"}})"),
        {"agent/quantity /spec/agent/runtime/resources/cpu", "agent/quantity /spec/agent/runtime/resources/memory"});
    EXPECT_EQ(found[0].hint, R"(write "2")");
    EXPECT_EQ(found[1].hint, R"(write "512M" or "512Mi")");
    check(runtime(R"({"resources":{"cpu":2,"memory":{}}})"), {});
    check_warnings(runtime(R"({"resources":{"memory":"512m"}})"),
                   {"agent/memory-unit /spec/agent/runtime/resources/memory"});
}

TEST(Rules, AProbeHasWhatItsTypeNeeds) {
    const std::string at = "agent/health-check /spec/agent/runtime/health_check";
    check(runtime(R"({"health_check":{"endpoint":null}})"), {at + " +endpoint"});
    const auto found =
        check(runtime(R"({"health_check":{"endpoint":"http://localhost:8080/live"}})"), {at + "/endpoint"});
    EXPECT_EQ(found[0].hint, R"(write "/live")");
    check(runtime(R"({"health_check":{"endpoint":"health"}})"), {at + "/endpoint"});
    check(runtime(R"({"health_check":{"endpoint":""}})"), {at + "/endpoint"});
    check(runtime(R"({"health_check":{"type":"exec","command":null}})"), {at + " +command"});
    check(runtime(R"({"health_check":{"type":"exec","command":[]}})"), {at + "/command"});
    check(runtime(R"({"health_check":{"type":"tcp","endpoint":"x"}})"), {});
    check(runtime(R"({"health_check":{"type":null,"endpoint":null}})"), {});
    for (const std::string_view port : {"0", "-1", "65536", "1e300", "18446744073709551616"}) {
        check(runtime(R"({"health_check":{"port":)" + std::string(port) + "}}"), {at + "/port"});
    }
    check(runtime(R"({"health_check":{"port":65535.0}})"), {});
    check(runtime(R"({"health_check":{"port":80.5}})"), {});
}

TEST(Rules, NamesOfCapabilitiesToolsAndVariablesAreUnique) {
    const auto found =
        check(body(R"({"capabilities":[{"name":"a"},{"name":"b"},{"name":"a"},{},{"name":7},{"name":"a"}]})"),
              {"agent/duplicate-capability /spec/agent/capabilities/2/name",
               "agent/duplicate-capability /spec/agent/capabilities/5/name"});
    EXPECT_EQ(found[0].cause, kube::CauseType::duplicate);
    EXPECT_EQ(found[0].found, R"("a")");
    EXPECT_THAT(found[1].message, HasSubstr("item 0"));
    check(body(R"({"bridge":{"mcp":{"tools":[{"name":"a"},{"name":"a"}]}}})"),
          {"agent/duplicate-tool /spec/agent/bridge/mcp/tools/1/name"});
    check(R"({"mcp":{"tools":["a","b","a",1]}})", {"agent/duplicate-tool /spec/mcp/tools/2"});
    check(R"({"workload":{"env":[{"name":"A"},{"name":"A"}]}})", {"agent/duplicate-env /spec/workload/env/1/name"});
}

TEST(Rules, RepeatsAreFoundInLongListsAsInShortOnes) {
    std::string list = "[";
    for (int i = 0; i < 40; ++i) {
        list += std::string(i == 0 ? "" : ",") + R"({"name":"n)" + std::to_string(i % 38) + R"("})";
    }
    check(body(R"({"capabilities":)" + list + "]}"), {"agent/duplicate-capability /spec/agent/capabilities/38/name",
                                                      "agent/duplicate-capability /spec/agent/capabilities/39/name"});
}

TEST(Rules, DependenciesAreOthersOnceEachWithARangeOfVersions) {
    const std::string at = "/spec/agent/dependencies/";
    check(body(R"({"dependencies":{"required":[{"agent_id":"scanner","min_version":"1.0.0"}]}})"),
          {"agent/self-dependency " + at + "required/0/agent_id"});
    check(body(R"({"dependencies":{"required":[{"agent_id":"extra","min_version":"1.0.0"}]}})"),
          {"agent/duplicate-dependency " + at + "optional/0/agent_id"});
    const auto found =
        check(body(R"({"dependencies":{"required":[{"agent_id":"a","min_version":"v1.2","max_version":"^2"}]}})"),
              {"agent/dependency-version " + at + "required/0/min_version",
               "agent/dependency-version " + at + "required/0/max_version"});
    EXPECT_EQ(found[0].hint, R"(write "1.2.0")");
    EXPECT_EQ(found[1].hint, R"(write "2.0.0")");
    check(body(R"({"dependencies":{"required":[{"agent_id":"a","min_version":"2.0.0","max_version":"2.0.0-rc.1"}]}})"),
          {"agent/dependency-version " + at + "required/0/max_version"});
    check(body(R"({"dependencies":{"required":[{"agent_id":"a","min_version":"2.0.0","max_version":"2.0.0"}]}})"), {});
}

TEST(Rules, ScalingHasARangeAndAMetric) {
    check(R"({"scaling":{"minReplicas":6}})", {"agent/scaling-range /spec/scaling/minReplicas"});
    check(R"({"scaling":{"minReplicas":5}})", {});
    check(R"({"scaling":{"target":null}})", {"agent/scaling-metric /spec/scaling +target"});
    check(R"({"scaling":{"metric":null}})", {"agent/scaling-metric /spec/scaling +metric"});
    check(R"({"scaling":{"metric":null,"target":null}})", {});
    check(R"({"scaling":{"metric":null,"target":null,"metrics":null}})",
          {"agent/scaling-metric /spec/scaling +metrics"});
    check(R"({"scaling":{"metric":null,"target":null,"metrics":[]}})", {"agent/scaling-metric /spec/scaling +metrics"});
    check(R"({"scaling":null})", {});
}

TEST(Rules, ACanaryNeedsStepsAndLimits) {
    const std::string at = "agent/canary /spec/rollout";
    check(R"({"rollout":{"steps":null}})", {at + " +steps"});
    check(R"({"rollout":{"steps":[]}})", {at + " +steps"});
    check(R"({"rollout":{"rollback":null}})", {at + " +rollback"});
    check(R"({"rollout":{"rollback":{"maxErrorRate":null,"minRequestSample":null}}})",
          {at + "/rollback +maxErrorRate", at + "/rollback +minRequestSample"});
    check(R"({"rollout":{"strategy":"Recreate","steps":null,"rollback":{"maxErrorRate":null}}})", {});
}

TEST(Rules, StepsDoOneThingEachRiseAndReachAll) {
    const std::string at = "/spec/rollout/steps";
    check(R"({"rollout":{"steps":[{"setWeight":50,"pause":"1m"},{},{"setWeight":100}]}})",
          {"agent/rollout-step " + at + "/0", "agent/rollout-step " + at + "/1"});
    check(R"({"rollout":{"steps":[{"setWeight":50},{"setWeight":40},{"setWeight":45},{"setWeight":100}]}})",
          {"agent/rollout-weights " + at + "/1/setWeight", "agent/rollout-weights " + at + "/2/setWeight"});
    check(R"({"rollout":{"steps":[{"setWeight":50},{"setWeight":50},{"setWeight":100},{"pause":"1m"}]}})", {});
    check(R"({"rollout":{"steps":[{"setWeight":50},{"pause":"1m"}]}})", {"agent/rollout-weights " + at});
    check(R"({"rollout":{"strategy":"RollingUpdate","steps":[{"setWeight":50}]}})", {"agent/rollout-weights " + at});
    // What the schema refuses is not judged again.
    check(R"({"rollout":{"steps":[{"setWeight":"100"}]}})", {});
    check(R"({"rollout":{"steps":[{"setWeight":1000}]}})", {});
    check(R"({"rollout":{"steps":[7,null]}})", {});
}

TEST(Rules, APauseIsADurationAboveZero) {
    for (const std::string_view pause : {"0", "0s", "-5m", "5", "5d", "", "999999999h"}) {
        check(R"({"rollout":{"steps":[{"setWeight":100},{"pause":")" + std::string(pause) + R"("}]}})",
              {"agent/rollout-pause /spec/rollout/steps/1/pause"});
    }
    check(R"({"rollout":{"steps":[{"setWeight":100},{"pause":"1h30m0.5s"}]}})", {});
}

TEST(Rules, AnErrorRateIsAShareFromNoneToAll) {
    for (const std::string_view rate :
         {"2%", "0.02", "0", "0%", "100%", "100.00%", "1", "1.0", "099%", "0.99999999999999999999"}) {
        check(R"({"rollout":{"rollback":{"maxErrorRate":")" + std::string(rate) + R"("}}})", {});
    }
    for (const std::string_view rate :
         {"", "%", "101%", "100.00000000000000000001%", "1.1", "2", "-1%", "1e-2", ".5", "5.%", "2 %", "2%%", "0,02"}) {
        check(R"({"rollout":{"rollback":{"maxErrorRate":")" + std::string(rate) + R"("}}})",
              {"agent/rollout-error-rate /spec/rollout/rollback/maxErrorRate"});
    }
}

TEST(Rules, MetricsAreAPresetOrAllThreeQueries) {
    const std::string at = "agent/rollout-metrics /spec/rollout/metrics";
    check(R"({"rollout":{"metrics":{"requests":"q"}}})", {at + "/preset"});
    check(R"({"rollout":{"metrics":{"preset":null,"requests":"q"}}})", {at + " +errorRate", at + " +p99"});
    check(R"({"rollout":{"metrics":{"preset":null,"requests":"q","errorRate":"q","p99":"q"}}})", {});
    check(R"({"rollout":{"metrics":{"preset":null}}})", {});
}

TEST(Rules, ContainerResourcesAreQuantitiesWithinTheirLimits) {
    const std::string at = "agent/workload-resources /spec/workload/resources";
    check(R"({"workload":{"resources":{"requests":{"cpu":"2","example.com/gpu":"1"}}}})", {at + "/requests/cpu"});
    check(R"({"workload":{"resources":{"limits":{"cpu":"x","a/b":-1,"memory":null}}}})",
          {at + "/limits/cpu", at + "/limits/a~1b"});
    check(R"({"workload":{"resources":{"requests":[],"limits":{"cpu":0.5,"memory":true}}}})",
          {at + "/requests", at + "/limits/memory"});
    check(R"({"workload":{"resources":{"requests":{"cpu":0.25}}}})", {});
    check(R"({"workload":{"resources":{"requests":{"cpu":0}}}})", {});
}

TEST(Rules, ProbeHeadersComeFromTheAgentsOwnNamespace) {
    check(R"({"mcp":{"headersFrom":[{"secretKeyRef":{"namespace":"agents"}},{"secretKeyRef":{"namespace":"other"}}]}})",
          {"agent/mcp-headers /spec/mcp/headersFrom/1/secretKeyRef/namespace"});
}

TEST(Rules, TheIdStaysWhatItIs) {
    check_update("{}", body(R"({"id":"other"})"), "Running", {"agent/id-changed /spec/agent/id"});
    check_update("{}", "{}", "Running", {});
}

TEST(Rules, TheImageStaysWhileARolloutRunsIfThatIsWanted) {
    const std::string other = runtime(R"({"image":"r.example/app:2"})");
    check_update("{}", other, "RolloutInProgress", {"agent/image-during-rollout /spec/agent/runtime/image"});
    check_update("{}", runtime(R"({"image":null})"), "RolloutInProgress",
                 {"agent/image-during-rollout /spec/agent/runtime/image"});
    check_update("{}", other, "Running", {});
    check_update("{}", R"({"agent":{"runtime":{"image":"r.example/app:2"}},"rollout":{"onSpecChange":"Restart"}})",
                 "RolloutInProgress", {});
    check_update("{}", "{}", "RolloutInProgress", {});
}

TEST(Rules, NothingIsSaidWhereTheSchemaHasSpoken) {
    const json::Document object = agent(R"({"rollout":{"steps":[{"setWeight":100},{"pause":"5 minutes"}]}})");
    kube::Findings found;
    kube::Finding said;
    said.rule = "schema/pattern";
    said.pointer = "/spec/rollout/steps/1/pause";
    found.push_back(said);
    check_agent(object.root(), {}, {}, found);
    EXPECT_EQ(found.size(), 1U);
}

TEST(Rules, PointersStandBelowTheBase) {
    const json::Document object = agent(runtime(R"({"image":"A"})"));
    kube::Findings found;
    check_agent(object.root(), {}, {.base_pointer = "/items/3"}, found);
    EXPECT_EQ(places(found), Places{"agent/image /items/3/spec/agent/runtime/image"});
    found.clear();
    check_agent_body(object.root().at("spec").at("agent"), "/agent", {}, found);
    EXPECT_EQ(places(found), Places{"agent/image /agent/runtime/image"});
}

TEST(Rules, QuotasHaveANameForALabelAndNativeQuantities) {
    const json::Document object =
        document(R"({"metadata":{"name":")" + std::string(64, 'a') +
                 R"("},"spec":{"resourceQuota":{"hard":{"requests.cpu":"-1","pods":10,"x":"1Gb"}}}})");
    kube::Findings found;
    check_tenant_quota(object.root(), {}, found);
    EXPECT_EQ(places(found), (Places{"tenantquota/name /metadata/name",
                                     "tenantquota/resource-quota /spec/resourceQuota/hard/requests.cpu",
                                     "tenantquota/resource-quota /spec/resourceQuota/hard/x"}));
    found.clear();
    const json::Document list = document(R"({"metadata":{"name":"t"},"spec":{"resourceQuota":{"hard":[1]}}})");
    check_tenant_quota(list.root(), {}, found);
    EXPECT_EQ(places(found), Places{"tenantquota/resource-quota /spec/resourceQuota/hard"});
    found.clear();
    const json::Document empty = document(R"({"metadata":{"name":"t"},"spec":{"maxAgents":0}})");
    check_tenant_quota(empty.root(), empty.root(), found);
    EXPECT_THAT(found, IsEmpty());
}

TEST(Warnings, SecretsInPlainTextAreToldButNeverShown) {
    const auto found = check_warnings(
        R"({"workload":{"env":[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"botToken","value":"hunter2"},{"name":"OPENAI_API_KEY","value":"hunter2"}]},
            "agent":{"integration":{"auth":{"config":{"client_secret":"hunter2"}}},
                     "bridge":{"aiflow":{"social_platforms":{"telegram":{"bot_token":"hunter2"}}}}}})",
        {"agent/secret-literal /spec/workload/env/0/value", "agent/secret-literal /spec/workload/env/1/value",
         "agent/secret-literal /spec/workload/env/2/value",
         "agent/secret-literal /spec/agent/integration/auth/config/client_secret",
         "agent/secret-literal /spec/agent/bridge/aiflow/social_platforms/telegram/bot_token"});
    for (const kube::Finding& finding : found) {
        EXPECT_THAT(kube::to_line(finding), Not(HasSubstr("hunter2")));
    }
}

TEST(Warnings, NamesThatOnlySoundLikeSecretsAreLeftAlone) {
    for (const std::string_view name :
         {"MAX_TOKENS", "TOKEN_LIMIT", "TOKEN_URL", "SECRET_NAME", "PASSWORD_FILE", "tokenizer", "MAX_TOKEN",
          "KEYBOARD", "AWS_ACCESS_KEY_ID", "PUBLIC_KEY", "LOG_LEVEL", "", "___"}) {
        check_warnings(R"({"workload":{"env":[{"name":")" + std::string(name) + R"(","value":"abc"}]}})", {});
    }
    for (const std::string_view value : {"", "true", "${X}", "$(X)", "<fill in>", "{{ .token }}"}) {
        check_warnings(R"({"workload":{"env":[{"name":"TOKEN","value":")" + std::string(value) + R"("}]}})", {});
    }
}

TEST(Warnings, AnImageThatFloatsIsTold) {
    check_warnings(runtime(R"({"image":"app"})"), {"agent/image-latest /spec/agent/runtime/image"});
    check_warnings(runtime(R"({"image":"app:latest"})"), {"agent/image-latest /spec/agent/runtime/image"});
    check_warnings(runtime(R"({"image":"NOT AN IMAGE"})"), {});
}

TEST(Warnings, UnknownMembersAreNamedWithTheNearestKnownOne) {
    kube::Findings found;
    warn_unknown({{"/spec/agent/runtime/imgae", "/spec/agent/runtime/image", "\"hunter2\""},
                  {"/spec/x-mine", "", "1"},
                  {"/spec/agent/x-a/b", "", "1"},
                  {"/spec/zzz", "", "1"}},
                 found);
    ASSERT_EQ(places(found),
              (Places{"agent/unknown-field /spec/agent/runtime/imgae", "agent/unknown-field /spec/zzz"}));
    EXPECT_EQ(found[0].hint, "did you mean spec.agent.runtime.image?");
    EXPECT_THAT(kube::to_line(found[0]), Not(HasSubstr("hunter2")));
    EXPECT_EQ(found[1].hint, "");
}

TEST(Warnings, InlineSchemasAreJudgedByTheMetaschemaWithinABudget) {
    // Enough of the metaschema to tell good from bad.
    const json::Document meta = document(
        R"({"type":"object","properties":{"type":{"enum":["object","string"]},"properties":{"additionalProperties":{"$ref":"#"}}}})");
    const auto plan = Plan::compile(meta.root());
    ASSERT_TRUE(plan.has_value()) << plan.error().message();
    const json::Document object = agent(body(
        R"({"capabilities":[{"input_schema":{"type":"object"},"output_schema":{"properties":{"a":{"type":"int"},"b":{"type":"int"}}}},{"input_schema":"https://x.example/","output_schema":7}]})"));
    const json::Value agent_body = object.root().at("spec").at("agent");
    kube::Findings found;
    warn_inline_schemas(agent_body, "/spec/agent", *plan, 100'000, found);
    ASSERT_EQ(places(found), Places{"agent/inline-schema /spec/agent/capabilities/0/output_schema"});
    EXPECT_THAT(found[0].message, HasSubstr("properties.a.type"));

    found.clear();
    warn_inline_schemas(agent_body, "/spec/agent", *plan, 1, found);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rule, "agent/inline-schema-not-checked");
    found.clear();
    warn_inline_schemas(agent_body, "/spec/agent", *plan, 0, found);
    EXPECT_EQ(found.size(), 1U);
}

namespace {

// The document with the value at tape index `at` replaced.
void append_with(std::string& out, json::Value value, std::uint32_t at, std::string_view other) {
    if (value.index() == at) {
        out.append(other);
    } else if (value.is_object()) {
        char before = '{';
        for (const json::Member member : value.members()) {
            out.push_back(before);
            before = ',';
            json::append_quoted(out, member.name);
            out.push_back(':');
            append_with(out, member.value, at, other);
        }
        out.append(before == '{' ? "{}" : "}");
    } else if (value.is_array()) {
        char before = '[';
        for (const json::Value element : value.elements()) {
            out.push_back(before);
            before = ',';
            append_with(out, element, at, other);
        }
        out.append(before == '[' ? "[]" : "]");
    } else {
        json::append(out, value);
    }
}

void collect(json::Value value, std::vector<std::uint32_t>& places_out) {
    places_out.push_back(value.index());
    for (const json::Member member : value.members()) {
        collect(member.value, places_out);
    }
    for (const json::Value element : value.elements()) {
        collect(element, places_out);
    }
}

}  // namespace

TEST(Rules, AnyValueInAnyPlaceIsJudgedWithoutHarm) {
    const json::Document meta = document(R"({"type":"object"})");
    const auto plan = Plan::compile(meta.root());
    ASSERT_TRUE(plan.has_value());
    const json::Document base = document(full_agent);
    std::vector<std::uint32_t> indices;
    collect(base.root(), indices);
    ASSERT_GT(indices.size(), 100U);
    for (const std::uint32_t at : indices) {
        for (const std::string_view other : {"null", "0", "-1", "1e308", "18446744073709551615", "\"\"", "\"x\"",
                                             "\"\\u0000\"", "[]", "[null]", "[[]]", "{}", "{\"\":null}", "true"}) {
            std::string text;
            append_with(text, base.root(), at, other);
            const json::Document object = document(text);
            kube::Findings found;
            check_agent(object.root(), {}, {.require_image = true}, found);
            check_agent(object.root(), base.root(), {}, found);
            check_agent(base.root(), object.root(), {}, found);
            check_tenant_quota(object.root(), {}, found);
            warn_agent(object.root(), {}, found);
            warn_inline_schemas(object.root().at("spec").at("agent"), "/spec/agent", *plan, 1000, found);
            for (const kube::Finding& finding : found) {
                EXPECT_FALSE(kube::to_line(finding).empty());
            }
        }
    }
}

TEST(Rules, AMegabyteInAnyStringIsJudgedQuickly) {
    const json::Document base = document(full_agent);
    std::vector<std::uint32_t> indices;
    collect(base.root(), indices);
    std::erase_if(indices, [&](std::uint32_t at) {
        return !json::Value{base.root().tape(), base.root().strings(), at}.is_string();
    });
    const std::string huge = "\"" + std::string(1'000'000, 'a') + "\"";
    for (const std::uint32_t at : indices) {
        std::string text;
        append_with(text, base.root(), at, huge);
        const json::Document object = document(text);
        kube::Findings found;
        const auto start = std::chrono::steady_clock::now();
        check_agent(object.root(), base.root(), {}, found);
        warn_agent(object.root(), {}, found);
        EXPECT_LT(micros_since(start), 500'000.0);
        for (const kube::Finding& finding : found) {
            EXPECT_LT(kube::to_line(finding).size(), 2'000U) << finding.rule;
        }
    }
}

TEST(Rules, TenThousandCapabilitiesAreSorted) {
    for (const bool same : {false, true}) {
        std::string list = "[";
        for (int i = 0; i < 10'000; ++i) {
            list +=
                std::string(i == 0 ? "" : ",") + R"({"name":"capability-)" + (same ? "x" : std::to_string(i)) + R"("})";
        }
        const json::Document object = agent(body(R"({"capabilities":)" + list + "]}"));
        kube::Findings found;
        const auto start = std::chrono::steady_clock::now();
        check_agent(object.root(), {}, {}, found);
        EXPECT_LT(micros_since(start), 2'000'000.0);
        EXPECT_EQ(found.size(), same ? RuleOptions{}.findings_max : 0U);
    }
}

TEST(Rules, ManyResourceNamesAreNotComparedPairByPair) {
    std::string amounts = "{";
    for (int i = 0; i < 100'000; ++i) {
        amounts += std::string(i == 0 ? "" : ",") + "\"r" + std::to_string(i) + "\":1";
    }
    amounts += "}";
    const json::Document object =
        agent(R"({"workload":{"resources":{"requests":)" + amounts + R"(,"limits":)" + amounts + "}}}");
    kube::Findings found;
    const auto start = std::chrono::steady_clock::now();
    check_agent(object.root(), {}, {}, found);
    EXPECT_LT(micros_since(start), 2'000'000.0);
    EXPECT_THAT(found, IsEmpty());
}
