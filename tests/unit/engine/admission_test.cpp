#include "engine/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ossa::engine {
namespace {

using json::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view good_body =
    R"({"id":"scanner","name":"Scanner","version":"1.2.0","role":"compliance",)"
    R"("runtime":{"type":"k8s","image":"registry.example/scanner:1.2.0","replicas":3},)"
    R"("capabilities":[{"name":"scan","description":"scans","input_schema":{"type":"object"},"output_schema":{"type":"object"},"timeout_seconds":300}]})";

std::string agent(std::string_view body, std::string_view more_spec = "",
                  std::string_view metadata = R"({"name":"scanner","namespace":"team"})") {
    return R"({"apiVersion":"ossa.ai/v1","kind":"Agent","metadata":)" + std::string(metadata) +
           R"(,"spec":{"ossaVersion":"1.0","agent":)" + std::string(body) + std::string(more_spec) + "}}";
}

struct Review {
    std::string operation = "CREATE";
    std::string object = "null";
    std::string old_object = "null";
    std::string resource = "agents";
    std::string sub_resource = "";
    std::string kind = R"({"group":"ossa.ai","version":"v1","kind":"Agent"})";

    std::string text() const {
        std::string out =
            R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":)" + kind +
            R"(,"resource":{"group":"ossa.ai","version":"v1","resource":")" + resource + R"("},)";
        if (!sub_resource.empty()) {
            out += R"("subResource":")" + sub_resource + R"(",)";
        }
        return out + R"("name":"scanner","namespace":"team","operation":")" + operation +
               R"(","userInfo":{"username":"jo"},"object":)" + object + R"(,"oldObject":)" + old_object +
               R"(,"dryRun":false,"options":null}})";
    }
};

// One decision and its answer, parsed.
struct Outcome {
    Decision decision;
    json::Document answer;
    Value response() const { return answer.root().at("response"); }
    std::vector<std::string> fields() const {
        std::vector<std::string> out;
        for (const Value cause : response().at("status").at("details").at("causes").elements()) {
            out.push_back(std::string(cause.at("field").string_or("")) + " " +
                          std::string(cause.at("reason").string_or("")));
        }
        return out;
    }
};

Outcome judge(Door door, const std::string& body, const Policy& policy = {}) {
    Scratch scratch;
    std::string text;
    Decision decision = admit(door, body, json::Padding::none, {}, policy, scratch, text);
    auto answer = json::Document::from(text);
    EXPECT_TRUE(answer) << text;
    return {std::move(decision), answer ? std::move(*answer) : json::Document{}};
}

std::string decode_base64(std::string_view text) {
    std::string out;
    unsigned bits = 0;
    int have = 0;
    for (const char c : text) {
        if (c == '=') {
            break;
        }
        const std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        bits = bits << 6U | static_cast<unsigned>(alphabet.find(c));
        have += 6;
        if (have >= 8) {
            have -= 8;
            out.push_back(static_cast<char>(bits >> have & 0xFFU));
        }
    }
    return out;
}

std::string patch_of(const Outcome& outcome) {
    return decode_base64(outcome.response().at("patch").string_or(""));
}

TEST(Admit, AllowsAGoodAgentUnderItsUid) {
    const Outcome outcome = judge(Door::validate_agent, Review{.object = agent(good_body)}.text());
    EXPECT_EQ(outcome.decision.verdict, Verdict::allowed);
    EXPECT_EQ(outcome.answer.root().at("apiVersion").as_string(), "admission.k8s.io/v1");
    EXPECT_EQ(outcome.response().at("uid").as_string(), "u-1");
    EXPECT_EQ(outcome.response().at("allowed").as_bool(), true);
    EXPECT_FALSE(outcome.response().at("warnings").exists());
}

TEST(Admit, DeniesWithEveryErrorAsACauseAndInTheMessage) {
    const Outcome outcome = judge(
        Door::validate_agent,
        Review{
            .object = agent(
                R"({"id":"Bad_Id","version":"1","role":"nope","runtime":{"type":"k8s","image":"a:1"},"capabilities":[]})")}
            .text());
    const Value status = outcome.response().at("status");
    EXPECT_EQ(outcome.response().at("allowed").as_bool(), false);
    EXPECT_EQ(status.at("code").as_int64(), 422);
    EXPECT_EQ(status.at("reason").as_string(), "Invalid");
    EXPECT_EQ(status.at("details").at("group").as_string(), "ossa.ai");
    EXPECT_EQ(status.at("details").at("kind").as_string(), "Agent");
    EXPECT_EQ(status.at("details").at("name").as_string(), "scanner");
    EXPECT_THAT(outcome.fields(), ::testing::UnorderedElementsAre(
                                      "spec.agent.id FieldValueInvalid", "spec.agent.name FieldValueRequired",
                                      "spec.agent.version FieldValueInvalid", "spec.agent.role FieldValueNotSupported",
                                      "spec.agent.capabilities FieldValueInvalid"));
    const std::string message{status.at("message").string_or("")};
    for (const char* field : {"spec.agent.id", "spec.agent.name", "spec.agent.version", "spec.agent.role"}) {
        EXPECT_THAT(message, HasSubstr(field));
    }
    EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(Admit, TheMessageListsTwentyFindingsAndCountsTheRest) {
    std::string capabilities;
    for (int i = 0; i < 25; ++i) {
        capabilities += std::string(i == 0 ? "" : ",") + "{\"name\":\"c" + std::to_string(i) +
                        R"(","description":"d","input_schema":5,"output_schema":{}})";
    }
    std::string body{good_body};
    const std::size_t start = body.find("[{");
    body = body.substr(0, start) + "[" + capabilities + "]}";
    const Outcome outcome = judge(Door::validate_agent, Review{.object = agent(body)}.text());
    EXPECT_EQ(outcome.fields().size(), 25U);
    EXPECT_THAT(std::string(outcome.response().at("status").at("message").string_or("")), HasSubstr("and 5 more"));
}

TEST(Mutate, WritesDefaultsAndOnlyThose) {
    const Outcome outcome = judge(
        Door::mutate_agent,
        Review{
            .object = agent(
                R"({"runtime":{"type":"k8s"},"policies":{"encryption":false},"capabilities":[{"name":"a"},{"timeout_seconds":1000000}]})")}
            .text());
    EXPECT_EQ(outcome.response().at("patchType").as_string(), "JSONPatch");
    const auto patch = json::Document::from(patch_of(outcome)).value();
    std::vector<std::string> ops;
    for (const Value op : patch.root().elements()) {
        ops.push_back(std::string(op.at("op").string_or("")) + " " + std::string(op.at("path").string_or("")) + " " +
                      json::to_text(op.at("value")));
    }
    EXPECT_THAT(ops, ::testing::UnorderedElementsAre("add /spec/agent/runtime/replicas 1",
                                                     "add /spec/agent/policies/audit false",
                                                     "add /spec/agent/policies/pii_handling \"none\"",
                                                     "add /spec/agent/capabilities/0/timeout_seconds 300"));
}

TEST(Mutate, R014_IsSilentWhenNothingIsMissing) {
    const Outcome outcome = judge(Door::mutate_agent, Review{.object = agent(good_body)}.text());
    EXPECT_EQ(outcome.response().at("allowed").as_bool(), true);
    EXPECT_FALSE(outcome.response().at("patch").exists());
    EXPECT_FALSE(outcome.response().at("patchType").exists());
}

TEST(Mutate, R011_NeverPatchesBelowWhatIsNotThere) {
    for (const char* object :
         {R"({"metadata":{}})", R"({"metadata":{},"spec":null})", R"({"metadata":{},"spec":[]})",
          R"({"metadata":{},"spec":{"agent":null}})", R"({"metadata":{},"spec":{"agent":{"runtime":5}}})",
          R"({"metadata":{},"spec":{"agent":{"capabilities":{"0":{}}}}})"}) {
        const Outcome outcome = judge(Door::mutate_agent, Review{.object = object}.text());
        EXPECT_EQ(outcome.response().at("allowed").as_bool(), true) << object;
        EXPECT_FALSE(outcome.response().at("patch").exists()) << object << patch_of(outcome);
    }
}

TEST(Mutate, KeepsTheTenantOfAnUpdateThatLeavesItOut) {
    Review review{.operation = "UPDATE",
                  .object = agent(good_body),
                  .old_object = agent(good_body, R"(,"tenantRef":"team-search")")};
    EXPECT_EQ(patch_of(judge(Door::mutate_agent, review.text())),
              R"([{"op":"add","path":"/spec/tenantRef","value":"team-search"}])");
    review.object = agent(good_body, R"(,"tenantRef":"other")");
    EXPECT_EQ(patch_of(judge(Door::mutate_agent, review.text())), "");
}

TEST(Mutate, R012_TouchesNoNumberOfTheUser) {
    const std::string body =
        R"({"runtime":{"type":"k8s","replicas":2},"capabilities":[{"timeout_seconds":5,"input_schema":{"maximum":9007199254740993,"minimum":-9223372036854775808,"x":18446744073709551615,"y":0.1}}]})";
    const Outcome outcome = judge(Door::mutate_agent, Review{.object = agent(body)}.text());
    EXPECT_FALSE(outcome.response().at("patch").exists());
}

TEST(Admit, R009_AnswersReviewsThatLackWhatOthersHave) {
    const std::vector<std::string> reviews{
        Review{.operation = "DELETE", .old_object = agent(good_body)}.text(),
        Review{.operation = "CONNECT"}.text(),
        Review{.operation = "UPDATE", .object = agent(good_body)}.text(),
        Review{.operation = "CREATE"}.text(),
        Review{.object = R"({"spec":{}})"}.text(),
        Review{.object = R"({"metadata":null,"spec":null})"}.text(),
        Review{.object = R"("text")"}.text(),
    };
    for (const Door door :
         {Door::mutate_agent, Door::validate_agent, Door::validate_scale, Door::validate_tenant_quota}) {
        for (const std::string& review : reviews) {
            const Outcome outcome = judge(door, review);
            EXPECT_NE(outcome.decision.verdict, Verdict::malformed) << review;
            EXPECT_EQ(outcome.response().at("uid").as_string(), "u-1") << review;
            EXPECT_TRUE(outcome.response().at("allowed").is_boolean()) << review;
            if (review.find("DELETE") != std::string::npos) {
                EXPECT_EQ(outcome.response().at("allowed").as_bool(), true);
                EXPECT_FALSE(outcome.response().at("patch").exists());
            }
        }
    }
}

TEST(Admit, WhatIsNoReviewIsMalformedButStillAnsweredInItsShape) {
    for (const char* body :
         {"", "{", "[]", "5", R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null})",
          R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}})",
          R"({"kind":"Pod","apiVersion":"v1"})"}) {
        const Outcome outcome = judge(Door::validate_agent, body);
        EXPECT_EQ(outcome.decision.verdict, Verdict::malformed) << body;
        EXPECT_EQ(outcome.response().at("allowed").as_bool(), false) << body;
        EXPECT_EQ(outcome.response().at("status").at("code").as_int64(), 400) << body;
    }
}

TEST(Admit, OldReviewVersionsAreDeniedUnderTheirUid) {
    const Outcome outcome =
        judge(Door::validate_agent,
              R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u-9"}})");
    EXPECT_EQ(outcome.response().at("uid").as_string(), "u-9");
    EXPECT_EQ(outcome.response().at("allowed").as_bool(), false);
}

TEST(Admit, R008_AScaleIsReadAsAScale) {
    Review review{
        .operation = "UPDATE",
        .object =
            R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"scanner"},"spec":{"replicas":5}})",
        .old_object =
            R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"scanner"},"spec":{"replicas":3}})",
        .sub_resource = "scale",
        .kind = R"({"group":"autoscaling","version":"v1","kind":"Scale"})"};
    EXPECT_EQ(judge(Door::validate_scale, review.text()).decision.verdict, Verdict::allowed);
    review.object =
        R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"scanner"},"spec":{"replicas":10001}})";
    const Outcome outcome = judge(Door::validate_scale, review.text());
    EXPECT_THAT(outcome.fields(), ElementsAre("spec.replicas FieldValueInvalid"));
    review.object = R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"scanner"},"spec":{}})";
    EXPECT_EQ(judge(Door::validate_scale, review.text()).decision.verdict, Verdict::allowed);
}

TEST(Admit, R008_OtherSubresourcesFollowAWrittenRule) {
    Review status{.operation = "UPDATE", .object = agent(good_body), .sub_resource = "status"};
    EXPECT_EQ(judge(Door::validate_agent, status.text()).decision.verdict, Verdict::allowed);
    Review unknown{.operation = "UPDATE", .object = agent(good_body), .sub_resource = "exec"};
    const Outcome outcome = judge(Door::validate_agent, unknown.text());
    EXPECT_EQ(outcome.decision.reason, "BadRequest");
    EXPECT_THAT(std::string(outcome.response().at("status").at("message").string_or("")),
                HasSubstr("webhook configuration"));
}

TEST(Admit, R005_AnAgentInDeletionIsNeverJudgedAgain) {
    const Review review{
        .operation = "UPDATE",
        .object = agent(R"({"id":"X"})", "", R"({"name":"x","deletionTimestamp":"2026-01-01T00:00:00Z"})"),
        .old_object = agent(good_body)};
    EXPECT_EQ(judge(Door::validate_agent, review.text()).decision.verdict, Verdict::allowed);
    const Outcome mutated = judge(Door::mutate_agent, review.text());
    EXPECT_FALSE(mutated.response().at("patch").exists());
}

TEST(Admit, R016_ADeepObjectIsDeniedCleanly) {
    const auto nested = [](std::size_t n) {
        std::string schema;
        for (std::size_t i = 0; i < n; ++i) {
            schema += R"({"items":)";
        }
        schema += "{}" + std::string(n, '}');
        std::string body{good_body};
        body.replace(body.find(R"({"type":"object"})"), 17, schema);
        return Review{.object = agent(body)}.text();
    };
    EXPECT_EQ(judge(Door::validate_agent, nested(240)).decision.verdict, Verdict::allowed);
    for (const std::size_t n : {std::size_t{246}, std::size_t{1000}, std::size_t{10'000}, std::size_t{100'000}}) {
        const Outcome outcome = judge(Door::validate_agent, nested(n));
        EXPECT_EQ(outcome.decision.verdict, Verdict::denied) << n;
        EXPECT_EQ(outcome.response().at("uid").as_string(), "u-1") << n;
        EXPECT_THAT(std::string(outcome.response().at("status").at("message").string_or("")), HasSubstr("nested")) << n;
    }
}

TEST(Admit, R018_AnAgentWithAGeneratedNameIsJudged) {
    const Outcome outcome = judge(Door::validate_agent,
                                  Review{.object = agent(R"({"id":"Bad"})", "", R"({"generateName":"scan-"})")}.text());
    EXPECT_EQ(outcome.decision.verdict, Verdict::denied);
    EXPECT_EQ(outcome.decision.namespace_, "team");
}

TEST(Admit, R023_ARepeatedMemberIsRefused) {
    std::string body{good_body};
    body.insert(1, R"("runtime":{"type":"local"},)");
    const Outcome outcome = judge(Door::validate_agent, Review{.object = agent(body)}.text());
    EXPECT_EQ(outcome.decision.verdict, Verdict::denied);
    EXPECT_THAT(std::string(outcome.response().at("status").at("message").string_or("")),
                HasSubstr("duplicate member name"));
}

TEST(Admit, WarningsStayWithinWhatTheApiServerShows) {
    std::string body{good_body};
    std::string extra;
    for (int i = 0; i < 40; ++i) {
        extra += R"("surprise_)" + std::to_string(i) + R"(\n":1,)";
    }
    body.insert(1, extra);
    const Outcome outcome = judge(Door::validate_agent, Review{.object = agent(body)}.text());
    const Value warnings = outcome.response().at("warnings");
    EXPECT_EQ(outcome.decision.verdict, Verdict::allowed);
    EXPECT_LE(warnings.size(), 15U);
    std::size_t bytes = 0;
    std::string last;
    for (const Value warning : warnings.elements()) {
        last = warning.string_or("");
        bytes += last.size();
        EXPECT_LE(last.size(), 200U);
        EXPECT_FALSE(last.empty());
        EXPECT_EQ(last.find('\n'), std::string::npos);
    }
    EXPECT_LE(bytes, 4096U);
    EXPECT_THAT(last, HasSubstr("more: run ossa-validator"));
}

TEST(Admit, AnImagelessAgentIsAWarningOrAnErrorAsThePolicySays) {
    std::string body{good_body};
    const std::string image = R"(,"image":"registry.example/scanner:1.2.0")";
    body.erase(body.find(image), image.size());
    const std::string review = Review{.object = agent(body)}.text();
    EXPECT_EQ(judge(Door::validate_agent, review).response().at("warnings").size(), 1U);
    EXPECT_EQ(judge(Door::validate_agent, review, {.require_image = true}).decision.verdict, Verdict::denied);
}

TEST(Admit, TenantQuotaLimitsMustBeWholeNumbers) {
    Review review{
        .object = R"({"apiVersion":"ossa.ai/v1","kind":"TenantQuota","metadata":{"name":"t"},"spec":{"maxAgents":3}})",
        .resource = "tenantquotas",
        .kind = R"({"group":"ossa.ai","version":"v1","kind":"TenantQuota"})"};
    EXPECT_EQ(judge(Door::validate_tenant_quota, review.text()).decision.verdict, Verdict::allowed);
    review.object =
        R"({"apiVersion":"ossa.ai/v1","kind":"TenantQuota","metadata":{"name":"t"},"spec":{"maxAgents":-1}})";
    EXPECT_THAT(judge(Door::validate_tenant_quota, review.text()).fields(),
                ElementsAre("spec.maxAgents FieldValueInvalid"));
}

TEST(Admit, AnAnswerStaysSmallHoweverLongTheNamesAre) {
    std::string body{good_body};
    body.insert(1, "\"" + std::string(1 << 20, 'n') + "\":1,");
    const std::string review = Review{.object = agent(body, R"(,"workload":{"resources":{"limits":{")" +
                                                                std::string(1 << 20, 'm') + R"(":"no quantity"}}})")}
                                   .text();
    Scratch scratch;
    std::string text;
    const Decision decision = admit(Door::validate_agent, review, json::Padding::none, {}, {}, scratch, text);
    EXPECT_EQ(decision.verdict, Verdict::denied);
    EXPECT_LT(text.size(), 64U << 10U);
}

TEST(Admit, R018_TheNamespaceIsTakenFromTheRequestWhenTheObjectHasNone) {
    const auto review = [](std::string_view secret_namespace) {
        return Review{
            .object = agent(
                good_body,
                R"(,"mcp":{"headersFrom":[{"name":"Authorization","secretKeyRef":{"name":"s","key":"k","namespace":")" +
                    std::string(secret_namespace) + R"("}}]})",
                R"({"name":"scanner"})")}
            .text();
    };
    EXPECT_EQ(judge(Door::validate_agent, review("team")).decision.verdict, Verdict::allowed);
    EXPECT_EQ(judge(Door::validate_agent, review("other")).decision.verdict, Verdict::denied);
}

TEST(FailClosed, EchoesTheUidOfWhateverCouldNotBeJudged) {
    std::string text;
    const Decision decision = fail_closed(Review{.object = agent(good_body)}.text(), text);
    const auto answer = json::Document::from(text).value();
    EXPECT_EQ(decision.verdict, Verdict::denied);
    EXPECT_EQ(answer.root().at("response").at("uid").as_string(), "u-1");
    EXPECT_EQ(answer.root().at("response").at("status").at("code").as_int64(), 500);
}

}  // namespace
}  // namespace ossa::engine
