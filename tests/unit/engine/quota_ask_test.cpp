#include "engine/quota_ask.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ossa::engine {
namespace {

using Kind = QuotaAsk::Kind;
using ::testing::HasSubstr;

struct Spec {
    std::string tenant;
    int replicas = 1;
    std::string version = "7";
    bool deleting = false;
    bool scaling = false;
    std::string type = "k8s";

    std::string text() const {
        return R"({"metadata":{"name":"scanner","namespace":"team","uid":"u1","resourceVersion":")" + version + R"(")" +
               (deleting ? R"(,"deletionTimestamp":"2026-12-07T00:00:00Z")" : "") +
               R"(},"spec":{"agent":{"runtime":{"type":")" + type + R"(","replicas":)" + std::to_string(replicas) +
               "}}" + (tenant.empty() ? "" : R"(,"tenantRef":")" + tenant + R"(")") +
               (scaling ? R"(,"scaling":{"minReplicas":1,"maxReplicas":4})" : "") + "}}";
    }
};

AgentChange ask(const std::string& object, const std::string& old = "") {
    static json::Document now, before;  // the views of an ask are copies
    now = std::move(*json::Document::from(object));
    before = old.empty() ? json::Document{} : std::move(*json::Document::from(old));
    return quota_ask_of(now.root(), before.root(), "team");
}

TEST(QuotaAsk, ACreationChargesTheWhole) {
    const auto change = ask(Spec{.tenant = "t", .replicas = 3}.text());
    ASSERT_FALSE(change.refusal);
    EXPECT_EQ(change.ask.kind, Kind::charge);
    EXPECT_EQ(change.ask.tenant, "t");
    EXPECT_EQ(change.ask.charge.rise, (Demand{1, 3, 0}));
    EXPECT_EQ(change.ask.charge.from_version, "");
    EXPECT_EQ(change.ask.charge.uid, "u1");
}

TEST(QuotaAsk, AnUpdateChargesItsRiseOnly) {
    const auto up =
        ask(Spec{.tenant = "t", .replicas = 5, .version = "9"}.text(), Spec{.tenant = "t", .replicas = 3}.text());
    EXPECT_EQ(up.ask.kind, Kind::charge);
    EXPECT_EQ(up.ask.charge.rise, (Demand{0, 2, 0}));
    EXPECT_EQ(up.ask.charge.from_version, "7") << "the version that it starts from";
    EXPECT_EQ(up.ask.charge.replicas, 5);
    for (const int replicas : {3, 2, 0}) {
        const auto down =
            ask(Spec{.tenant = "t", .replicas = replicas}.text(), Spec{.tenant = "t", .replicas = 3}.text());
        EXPECT_EQ(down.ask.kind, Kind::nothing);
        EXPECT_FALSE(down.refusal);
    }
}

TEST(QuotaAsk, AMoveChargesTheWholeThere) {
    for (const char* from : {"a", ""}) {
        const auto move = ask(Spec{.tenant = "b", .replicas = 3}.text(), Spec{.tenant = from, .replicas = 3}.text());
        EXPECT_EQ(move.ask.kind, Kind::charge);
        EXPECT_EQ(move.ask.tenant, "b");
        EXPECT_EQ(move.ask.charge.rise, (Demand{1, 3, 0}));
    }
}

TEST(QuotaAsk, ATenantIsNotShaken) {
    const auto change = ask(Spec{}.text(), Spec{.tenant = "t"}.text());
    ASSERT_TRUE(change.refusal);
    EXPECT_EQ(change.refusal->code, 403);
    EXPECT_THAT(change.refusal->message, HasSubstr("tenantRef cannot be taken away"));
}

TEST(QuotaAsk, UntenantedIsAskedAboutOnceAndNeverCharged) {
    EXPECT_EQ(ask(Spec{}.text()).ask.kind, Kind::need_tenant);
    EXPECT_EQ(ask(Spec{.replicas = 90}.text(), Spec{}.text()).ask.kind, Kind::nothing);
}

TEST(QuotaAsk, InDeletionNothingMayRise) {
    for (const char* tenant : {"t", ""}) {
        const Spec old{.tenant = tenant, .replicas = 3};
        const auto up = ask(Spec{.tenant = tenant, .replicas = 4, .deleting = true}.text(), old.text());
        ASSERT_TRUE(up.refusal) << tenant;
        EXPECT_THAT(up.refusal->message, HasSubstr("is being deleted"));
        const auto down = ask(Spec{.tenant = tenant, .replicas = 2, .deleting = true}.text(), old.text());
        EXPECT_FALSE(down.refusal);
        EXPECT_EQ(down.ask.kind, Kind::nothing);
    }
    EXPECT_TRUE(ask(Spec{.tenant = "b", .deleting = true}.text(), Spec{.tenant = "a"}.text()).refusal);
}

struct Scaled {
    QuotaAsk ask;
    std::optional<QuotaRefusal> refusal;
};
Scaled scale(int replicas, const Spec& agent, const std::string& version = "7", const std::string& uid = "u1") {
    const auto now = json::Document::from(R"({"spec":{"replicas":)" + std::to_string(replicas) + "}}");
    const auto old =
        json::Document::from(R"({"metadata":{"uid":")" + uid + R"(","resourceVersion":")" + version + R"("}})");
    const auto object = json::Document::from(agent.text());
    Scaled out{scale_ask_of(now->root(), old->root(), "scanner", "team"), {}};
    EXPECT_EQ(out.ask.kind, Kind::scale);
    out.refusal = resolve_scale(out.ask, object->root());
    return out;
}

TEST(ScaleAsk, ChargesWhatTheAgentWouldTakeMore) {
    const auto up = scale(5, {.tenant = "t", .replicas = 3});
    EXPECT_FALSE(up.refusal);
    EXPECT_EQ(up.ask.kind, Kind::charge);
    EXPECT_EQ(up.ask.tenant, "t");
    EXPECT_EQ(up.ask.charge.rise, (Demand{0, 2, 0}));
    EXPECT_EQ(up.ask.charge.from_version, "7");
    EXPECT_EQ(scale(3, {.tenant = "t", .replicas = 3}).ask.kind, Kind::nothing);
    EXPECT_EQ(scale(0, {.tenant = "t", .replicas = 3}).ask.kind, Kind::nothing);
    EXPECT_EQ(scale(9, {.replicas = 3}).ask.kind, Kind::nothing) << "untenanted";
    EXPECT_EQ(scale(9, {.tenant = "t", .type = "edge"}).ask.kind, Kind::nothing) << "never runs here";
}

TEST(ScaleAsk, AnotherAgentThanWasSeenIsAConflict) {
    for (const auto& other : {scale(5, {.tenant = "t"}, "6"), scale(5, {.tenant = "t"}, "7", "u2")}) {
        ASSERT_TRUE(other.refusal);
        EXPECT_EQ(other.refusal->code, 409);
    }
}

TEST(ScaleAsk, AnAutoscalerOwnsTheReplicas) {
    const auto owned = scale(2, {.tenant = "t", .replicas = 3, .scaling = true});
    ASSERT_TRUE(owned.refusal);
    EXPECT_EQ(owned.refusal->code, 403);
    EXPECT_THAT(owned.refusal->message, HasSubstr("spec.scaling"));
    EXPECT_THAT(owned.refusal->message, HasSubstr("1 to 4"));
}

TEST(ScaleAsk, InDeletionNothingMayRise) {
    EXPECT_TRUE(scale(4, {.tenant = "t", .replicas = 3, .deleting = true}).refusal);
    EXPECT_TRUE(scale(4, {.replicas = 3, .deleting = true}).refusal) << "untenanted as well";
    EXPECT_FALSE(scale(2, {.tenant = "t", .replicas = 3, .deleting = true}).refusal);
}

TEST(Untenanted, DependsOnWhatTheNamespaceHas) {
    const std::vector<std::string> none, one{"a"}, two{"a", "b"};
    EXPECT_FALSE(judge_untenanted(none, "team", false));
    EXPECT_THAT(judge_untenanted(none, "team", true)->message, HasSubstr("no TenantQuota"));
    EXPECT_EQ(judge_untenanted(none, "team", true)->code, 403);
    EXPECT_EQ(judge_untenanted(one, "team", false)->code, 429) << "the next try gets it by default";
    EXPECT_THAT(judge_untenanted(two, "team", false)->message, HasSubstr("a, b"));
    EXPECT_EQ(only_tenant(one), "a");
    EXPECT_FALSE(only_tenant(none));
    EXPECT_FALSE(only_tenant(two));
    std::vector<std::string> many(14, "q");
    EXPECT_THAT(judge_untenanted(many, "team", false)->message, HasSubstr("and 4 more"));
    EXPECT_THAT(no_such_tenant("x", "team", two).message, HasSubstr("\"x\""));
}

}  // namespace
}  // namespace ossa::engine
