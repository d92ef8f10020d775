#include "engine/quota.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ossa::engine {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TenantQuota books(QuotaLimits limits = {.replicas = 15}, Demand used = {3, 12, 0}) {
    TenantQuota out;
    out.namespace_ = "agents";
    out.name = "team-search";
    out.uid = "q-1";
    out.resource_version = "700";
    out.generation = 1;
    out.held = true;
    out.limits = limits;
    out.observed_generation = 1;
    out.counted_version = 500;
    out.used = used;
    return out;
}

Charge charge(std::string uid, std::string from_version, Demand rise, std::int64_t replicas = 1) {
    return {.uid = uid,
            .name = "agent-" + uid,
            .from_version = std::move(from_version),
            .rise = rise,
            .replicas = replicas};
}

Reservation reservation(std::string uid, std::string from_version, Demand amount, std::string asked = "600") {
    return {.uid = uid,
            .name = "agent-" + uid,
            .from_version = std::move(from_version),
            .asked_version = std::move(asked),
            .amount = amount};
}

Observation seen_at(std::uint64_t through, Demand used, bool consistent = false) {
    return {.used = used, .through = through, .consistent = consistent};
}

TEST(Reserve, ARefusalNamesUsedReservedAndRequested) {
    TenantQuota quota = books();
    quota.reservations = {reservation("a", "", {1, 2, 0})};
    const TenantQuota before = quota;
    const ReserveResult result = reserve(quota, charge("b", "", {1, 4, 0}, 4));
    EXPECT_EQ(result.outcome, Reserved::exceeded);
    EXPECT_EQ(result.message,
              R"(quota "team-search": maxTotalReplicas 15 would be exceeded: used 12, reserved 2, requested +4)");
    EXPECT_EQ(quota.reservations, before.reservations);
}

TEST(Reserve, EveryDimensionThatIsExceededIsTold) {
    TenantQuota quota = books({.agents = 3, .replicas = 15, .gpus = 0, .replicas_per_agent = 2});
    const ReserveResult result = reserve(quota, charge("b", "", {1, 4, 1}, 4));
    EXPECT_EQ(result.message,
              R"(quota "team-search": maxAgents 3 would be exceeded: used 3, reserved 0, requested +1; )"
              "maxTotalReplicas 15 would be exceeded: used 12, reserved 0, requested +4; "
              "maxGPUs 0 would be exceeded: used 0, reserved 0, requested +1; "
              "maxReplicasPerAgent 2 would be exceeded: requested 4");
}

TEST(Reserve, UpToTheLimitAndNotBeyond) {
    TenantQuota quota = books();
    EXPECT_EQ(reserve(quota, charge("a", "", {1, 3, 0})).outcome, Reserved::granted);
    EXPECT_EQ(reserve(quota, charge("b", "", {1, 1, 0})).outcome, Reserved::exceeded);
    EXPECT_EQ(reserve(quota, charge("c", "", {1, 0, 0})).outcome, Reserved::granted);
    EXPECT_THAT(quota.reservations,
                ElementsAre(reservation("a", "", {1, 3, 0}, "700"), reservation("c", "", {1, 0, 0}, "700")));
}

TEST(Reserve, ADimensionThatDoesNotRiseIsNeverAReason) {
    TenantQuota quota =
        books({.agents = 1, .replicas = 5, .gpus = 4}, {3, 12, 0});  // over quota: the limits were lowered
    EXPECT_EQ(reserve(quota, charge("a", "9", {0, 0, 2}, 8)).outcome, Reserved::granted);
    EXPECT_EQ(reserve(quota, charge("b", "9", {0, 1, 0}, 8)).outcome, Reserved::exceeded);
}

TEST(Reserve, ReplicasPerAgentOnlyWhenReplicasRise) {
    TenantQuota quota = books({.gpus = 9, .replicas_per_agent = 2});
    EXPECT_EQ(reserve(quota, charge("a", "9", {0, 0, 1}, 8)).outcome, Reserved::granted);
    EXPECT_EQ(reserve(quota, charge("b", "9", {0, 1, 0}, 8)).outcome, Reserved::exceeded);
    EXPECT_EQ(reserve(quota, charge("c", "9", {0, 1, 0}, 2)).outcome, Reserved::granted);
}

// R037: the API server asks again for the same change when its write conflicts, with another difference.
TEST(Reserve, R037_OneKeyTwiceIsTheLargestAndNeitherSkippedNorSummed) {
    TenantQuota quota = books({.replicas = 20});
    EXPECT_EQ(reserve(quota, charge("a", "9", {0, 3, 0}, 5)).outcome, Reserved::granted);
    EXPECT_EQ(reserve(quota, charge("a", "9", {0, 5, 0}, 7)).outcome, Reserved::granted);
    EXPECT_EQ(reserve(quota, charge("a", "9", {0, 2, 1}, 4)).outcome, Reserved::granted);
    EXPECT_THAT(quota.reservations, ElementsAre(reservation("a", "9", {0, 5, 1}, "700")));
    EXPECT_EQ(charge_of(quota.reservations), (Demand{0, 5, 1}));
    EXPECT_EQ(reserve(quota, charge("a", "9", {0, 9, 0}, 11)).outcome, Reserved::exceeded);
    EXPECT_EQ(reserve(quota, charge("a", "10", {0, 3, 0}, 8)).outcome, Reserved::granted);
    EXPECT_EQ(charge_of(quota.reservations), (Demand{0, 8, 1}));
}

// A client's create that is tried again is another object: of one name only one can be stored.
TEST(Reserve, PendingCreationsOfOneNameCountAsTheLargest) {
    TenantQuota quota = books({.agents = 4, .replicas = 15});
    Charge first = charge("a", "", {1, 3, 0});
    Charge again = charge("b", "", {1, 2, 0});
    again.name = first.name;
    EXPECT_EQ(reserve(quota, first).outcome, Reserved::granted);
    EXPECT_EQ(reserve(quota, again).outcome, Reserved::granted);
    EXPECT_EQ(charge_of(quota.reservations), (Demand{1, 3, 0}));
    EXPECT_EQ(reserve(quota, charge("c", "", {1, 0, 0})).outcome, Reserved::exceeded);
}

TEST(Reserve, AskingAgainRenews) {
    TenantQuota quota = books();
    quota.reservations = {reservation("a", "9", {0, 1, 0}, "600")};
    EXPECT_EQ(reserve(quota, charge("a", "9", {0, 1, 0})).outcome, Reserved::granted);
    EXPECT_EQ(quota.reservations[0].asked_version, "700");
}

TEST(Reserve, TooManyUnderWayIsNoRefusalByTheLimit) {
    TenantQuota quota = books({});
    for (std::size_t i = 0; i < reservations_max; ++i) {
        EXPECT_EQ(reserve(quota, charge(std::to_string(i), "", {1, 1, 0})).outcome, Reserved::granted);
    }
    const ReserveResult result = reserve(quota, charge("more", "", {1, 1, 0}));
    EXPECT_EQ(result.outcome, Reserved::full);
    EXPECT_THAT(result.message, HasSubstr("500 changes under way"));
    EXPECT_EQ(reserve(quota, charge("7", "", {1, 2, 0})).outcome, Reserved::granted);  // a key that is there
}

TEST(Readiness, WhatComesFirst) {
    TenantQuota quota = books();
    EXPECT_EQ(readiness_of(quota), Readiness::ready);
    quota.observed_generation.reset();
    EXPECT_EQ(readiness_of(quota), Readiness::count_first);
    quota.held = false;
    EXPECT_EQ(readiness_of(quota), Readiness::hold_first);
    quota.deleting = true;
    EXPECT_EQ(readiness_of(quota), Readiness::deleting);
}

// R039: what was seen is retired by version, never by time.
TEST(Recount, RetiresWhatWasSeenAndNothingElse) {
    TenantQuota quota = books({}, {0, 0, 0});
    quota.reservations = {reservation("created", "", {1, 1, 0}),   reservation("pending", "", {1, 2, 0}),
                          reservation("updated", "90", {0, 3, 0}), reservation("as-before", "90", {0, 4, 0}),
                          reservation("older", "90", {0, 5, 0}),   reservation("deleted", "90", {0, 6, 0})};
    const Sightings seen{{"created", 501}, {"updated", 510}, {"as-before", 90}, {"older", 89}, {"deleted", 520}};
    EXPECT_EQ(recount(quota, seen_at(530, {4, 9, 0}), seen), Recounted::changed);
    EXPECT_THAT(quota.reservations,
                ElementsAre(reservation("pending", "", {1, 2, 0}), reservation("as-before", "90", {0, 4, 0}),
                            reservation("older", "90", {0, 5, 0})));
    EXPECT_EQ(quota.used, (Demand{4, 9, 0}));
    EXPECT_EQ(quota.counted_version, 530U);
}

TEST(Recount, QuietWhenNothingChanged) {
    TenantQuota quota = books();
    quota.reservations = {reservation("pending", "", {1, 2, 0})};
    EXPECT_EQ(recount(quota, seen_at(900, quota.used), {}), Recounted::unchanged);
    EXPECT_EQ(quota.counted_version, 500U);
    quota.generation = 2;  // a new limit is counted against
    EXPECT_EQ(recount(quota, seen_at(900, quota.used), {}), Recounted::changed);
    EXPECT_EQ(quota.observed_generation, 2);
}

TEST(Recount, AStoreBehindTheLastCountIsTooOld) {
    TenantQuota quota = books();
    EXPECT_EQ(recount(quota, seen_at(499, {9, 9, 9}), {}), Recounted::too_old);
    EXPECT_EQ(quota.used, (Demand{3, 12, 0}));
    EXPECT_EQ(recount(quota, seen_at(500, {9, 9, 9}), {}), Recounted::changed);
}

TEST(Recount, DropsOnlyByAConsistentListAndOnlyThatVeryAsk) {
    TenantQuota quota = books();
    const Reservation old = reservation("a", "9", {0, 1, 0}, "600");
    quota.reservations = {old};
    EXPECT_EQ(recount(quota, seen_at(900, quota.used, false), {}, {ask_of(old)}), Recounted::unchanged);
    ReservationAsk other = ask_of(old);
    other.asked_version = "599";
    EXPECT_EQ(recount(quota, seen_at(900, quota.used, true), {}, {other}), Recounted::unchanged);
    EXPECT_EQ(recount(quota, seen_at(900, quota.used, true), {}, {ask_of(old)}), Recounted::changed);
    EXPECT_THAT(quota.reservations, IsEmpty());
}

// R040: a wall clock that is wrong changes nothing: ages are this process's own.
TEST(Ages, R040_CountFromWhenThisProcessSawTheAsk) {
    ReservationAges ages;
    TenantQuota quota = books();
    quota.reservations = {reservation("a", "9", {0, 1, 0}, "600")};
    ages.note(quota, seconds(1000));
    quota.reservations.push_back(reservation("b", "9", {0, 1, 0}, "601"));
    ages.note(quota, seconds(1050));
    EXPECT_EQ(ages.next_drop("q-1", seconds(90)), ReservationAges::Time{seconds(1090)});
    EXPECT_THAT(ages.droppable("q-1", seconds(1089), seconds(90)), IsEmpty());
    EXPECT_THAT(ages.droppable("q-1", seconds(1090), seconds(90)), ElementsAre(ask_of(quota.reservations[0])));
    quota.reservations[0].asked_version = "602";  // asked for again
    ages.note(quota, seconds(1091));
    EXPECT_THAT(ages.droppable("q-1", seconds(1092), seconds(90)), IsEmpty());
    EXPECT_EQ(ages.next_drop("q-1", seconds(90)), ReservationAges::Time{seconds(1140)});
    quota.reservations.clear();
    ages.note(quota, seconds(1100));
    EXPECT_EQ(ages.next_drop("q-1", seconds(90)), std::nullopt);
    EXPECT_THAT(ages.droppable("another", seconds(1092), seconds(90)), IsEmpty());
}

TEST(Books, AreReadAndWrittenAlike) {
    const std::string object =
        R"({"metadata":{"name":"team","namespace":"agents","uid":"q-1","resourceVersion":"77","generation":3,)"
        R"("finalizers":["other/one","ossa.ai/reservations"]},"spec":{"maxAgents":5,"maxTotalReplicas":9},)"
        R"("status":{"conditions":[{"type":"Ready"}]}})";
    auto document = json::Document::from(object);
    ASSERT_TRUE(document);
    TenantQuota quota = tenant_quota_of(document->root());
    EXPECT_TRUE(quota.held);
    EXPECT_EQ(readiness_of(quota), Readiness::count_first);
    EXPECT_EQ(quota.limits.agents, 5);
    EXPECT_EQ(quota.limits.gpus, std::nullopt);
    first_count(quota, seen_at(70, {2, 4, 1}, true));
    EXPECT_EQ(reserve(quota, charge("a\"b", "", {1, 2, 0}, 2)).outcome, Reserved::granted);

    auto patch = json::Document::from(status_patch(quota));
    ASSERT_TRUE(patch) << status_patch(quota);
    EXPECT_EQ(patch->root().at("metadata").at("resourceVersion").string_or(""), "77");
    auto stored = json::Document::from(json::merge_patch(document->root(), patch->root()));
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->root().at("status").at("conditions").size(), 1U);
    const TenantQuota again = tenant_quota_of(stored->root());
    EXPECT_EQ(again.reservations, quota.reservations);
    EXPECT_EQ(again.used, quota.used);
    EXPECT_EQ(again.observed_generation, 3);
    EXPECT_EQ(again.counted_version, 70U);
}

TEST(Books, TheFinalizerIsAddedAndTakenBesideThoseOfOthers) {
    auto document = json::Document::from(R"({"metadata":{"resourceVersion":"77","finalizers":["other/one"]}})");
    ASSERT_TRUE(document);
    EXPECT_EQ(hold_patch(document->root()),
              R"({"metadata":{"resourceVersion":"77","finalizers":["other/one","ossa.ai/reservations"]}})");
    auto held = json::Document::from(
        R"({"metadata":{"resourceVersion":"78","finalizers":["ossa.ai/reservations","other/one"]}})");
    ASSERT_TRUE(held);
    EXPECT_EQ(release_patch(held->root()), R"({"metadata":{"resourceVersion":"78","finalizers":["other/one"]}})");
}

TEST(Books, WhatCannotBeReadIsAsIfItWereAbsent) {
    auto document = json::Document::from(
        R"({"metadata":{"resourceVersion":5},"spec":{"maxAgents":"5"},"status":{"usedAgents":-3,"countedVersion":"x1",)"
        R"("reservations":[{"uid":7,"agents":"many"}, null]}})");
    ASSERT_TRUE(document);
    const TenantQuota quota = tenant_quota_of(document->root());
    EXPECT_EQ(quota.limits.agents, std::nullopt);
    EXPECT_EQ(quota.used, Demand{});
    EXPECT_EQ(quota.counted_version, 0U);
    EXPECT_EQ(charge_of(quota.reservations), Demand{});
    EXPECT_EQ(version_number(""), 0U);
    EXPECT_EQ(version_number("18446744073709551616"), 0U);
    EXPECT_EQ(version_number("18446744073709551615"), 18446744073709551615U);
}

}  // namespace
}  // namespace ossa::engine
