#include "kube/types/lease.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ossa::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Time = LeaseMachine::Time;

LeaseRecord held(std::string holder, std::string version, std::int64_t seconds_ = 15) {
    return {.holder = std::move(holder),
            .resource_version = std::move(version),
            .duration_seconds = seconds_,
            .transitions = 3,
            .renew_time = "2026-12-07T00:00:00.000000Z",
            .acquire_time = "2026-12-07T00:00:00.000000Z"};
}

template <class Step>
bool is(const LeaseMachine& machine) {
    return std::holds_alternative<Step>(machine.step());
}

TEST(LeaseMachine, AnAbsentLeaseIsCreatedAndLedFromItsSending) {
    LeaseMachine machine("me", {}, 1);
    EXPECT_TRUE(is<LeaseMachine::Read>(machine));
    machine.on_absent();
    EXPECT_TRUE(is<LeaseMachine::Create>(machine));
    EXPECT_FALSE(machine.is_leader(Time{}));
    machine.on_written(held("me", "1"), Time{}, Time{} + seconds(3));
    EXPECT_TRUE(machine.is_leader(Time{} + milliseconds(9'999)));
    EXPECT_FALSE(machine.is_leader(Time{} + seconds(10))) << "counted from the sending, not from the answer";
    EXPECT_TRUE(machine.has_lost(Time{} + seconds(10)));
}

// R054: the clocks of others are not compared with ours; a lease has ended when it did not change for its duration.
TEST(LeaseMachine, R054_AnotherHoldersLeaseIsTakenOnlyAfterItStoodStill) {
    LeaseMachine machine("me", {}, 1);
    Time now{};
    const Time first = now;
    int reads = 0;
    while (is<LeaseMachine::Read>(machine) && reads < 100) {
        ++reads;
        machine.on_read(held("other", "1"), now);
        if (const auto* sleep = std::get_if<LeaseMachine::Sleep>(&machine.step())) {
            EXPECT_GT(sleep->until, now);
            now = sleep->until;
            machine.on_slept();
        }
    }
    ASSERT_TRUE(is<LeaseMachine::Take>(machine));
    EXPECT_GE(now - first, seconds(15));
    EXPECT_FALSE(std::get<LeaseMachine::Take>(machine.step()).ours);
}

TEST(LeaseMachine, ARenewalStartsTheWaitAnew) {
    LeaseMachine machine("me", {}, 1);
    machine.on_read(held("other", "1"), Time{});
    machine.on_slept();
    machine.on_read(held("other", "2"), Time{} + seconds(14));
    machine.on_slept();
    machine.on_read(held("other", "2"), Time{} + seconds(16));
    EXPECT_TRUE(is<LeaseMachine::Sleep>(machine));
}

TEST(LeaseMachine, AHoldersLongerDurationCounts) {
    LeaseMachine machine("me", {}, 1);
    machine.on_read(held("other", "1", 60), Time{});
    machine.on_slept();
    machine.on_read(held("other", "1", 60), Time{} + seconds(59));
    EXPECT_TRUE(is<LeaseMachine::Sleep>(machine));
    machine.on_slept();
    machine.on_read(held("other", "1", 60), Time{} + seconds(60));
    EXPECT_TRUE(is<LeaseMachine::Take>(machine));
}

TEST(LeaseMachine, AReleasedOrOwnLeaseIsTakenAtOnce) {
    for (const char* holder : {"", "me"}) {
        LeaseMachine machine("me", {}, 1);
        machine.on_read(held(holder, "1"), Time{});
        ASSERT_TRUE(is<LeaseMachine::Take>(machine)) << holder;
        EXPECT_EQ(std::get<LeaseMachine::Take>(machine.step()).over.resource_version, "1");
    }
}

// R052: what cannot renew stops before another may begin.
TEST(LeaseMachine, R052_AFailedRenewalReadsAgainAndLeadsNoLonger) {
    LeaseMachine machine("me", {}, 1);
    machine.on_absent();
    machine.on_written(held("me", "1"), Time{}, Time{});
    machine.on_slept();
    ASSERT_TRUE(is<LeaseMachine::Take>(machine));
    EXPECT_TRUE(std::get<LeaseMachine::Take>(machine.step()).ours);
    machine.on_failure(Time{} + seconds(2));
    machine.on_slept();
    EXPECT_TRUE(is<LeaseMachine::Read>(machine));
    EXPECT_TRUE(machine.is_leader(Time{} + seconds(9)));
    EXPECT_TRUE(machine.has_lost(Time{} + seconds(11)));
}

// Candidates with steady clocks of different origins, messages that take time, processes that freeze: never two
// leaders.
TEST(LeaseMachine, R052_NeverTwoLeadersAtOnce) {
    int led = 0;
    int changes = 0;
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        std::mt19937 dice(seed);
        const auto throw_ = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(dice); };
        std::optional<LeaseRecord> stored;
        std::uint64_t version = 0;
        struct Candidate {
            std::string name;
            milliseconds clock_ahead;
            LeaseMachine machine;
            milliseconds wakes{0};
        };
        std::vector<Candidate> candidates;
        for (int i = 0; i < 3; ++i) {
            const std::string name = "c" + std::to_string(i);
            candidates.push_back({name, milliseconds(throw_(0, 1'000'000)),
                                  LeaseMachine(name, {}, seed * 10 + static_cast<std::uint32_t>(i)),
                                  milliseconds(throw_(0, 500))});
        }
        std::string leader_before;
        for (milliseconds now{0}; now < std::chrono::minutes(3); now += milliseconds(50)) {
            for (Candidate& c : candidates) {
                if (now < c.wakes) {
                    continue;
                }
                const Time sent{now + c.clock_ahead};
                const milliseconds delay(throw_(0, 20) == 0 ? throw_(0, 40'000)
                                                            : throw_(0, 100));  // frozen now and then
                const Time heard{now + delay + c.clock_ahead};
                const bool lost = throw_(0, 9) == 0;
                const LeaseMachine::Step step = c.machine.step();
                c.wakes = now + delay;
                if (const auto* sleep = std::get_if<LeaseMachine::Sleep>(&step)) {
                    if (sent >= sleep->until) {
                        c.machine.on_slept();
                    }
                    c.wakes = now + milliseconds(50);
                } else if (std::holds_alternative<LeaseMachine::Read>(step)) {
                    if (lost) {
                        c.machine.on_failure(heard);
                    } else if (stored) {
                        c.machine.on_read(*stored, heard);
                    } else {
                        c.machine.on_absent();
                    }
                } else {
                    const auto* take = std::get_if<LeaseMachine::Take>(&step);
                    const bool fits = take != nullptr
                                          ? stored && stored->resource_version == take->over.resource_version
                                          : !stored.has_value();
                    if (fits) {
                        stored = held(c.name, std::to_string(++version));
                    }
                    if (fits && !lost) {
                        c.machine.on_written(*stored, sent, heard);
                    } else {
                        c.machine.on_failure(heard);  // it may be stored all the same
                    }
                }
            }
            std::string leader;
            for (const Candidate& c : candidates) {
                if (c.machine.is_leader(Time{now + c.clock_ahead})) {
                    ASSERT_EQ(leader, "") << "seed " << seed << " at " << now.count() << " ms: also " << c.name;
                    leader = c.name;
                }
            }
            led += leader.empty() ? 0 : 1;
            changes += !leader.empty() && leader != leader_before ? 1 : 0;
            leader_before = leader.empty() ? leader_before : leader;
        }
    }
    EXPECT_GT(led, 200 * 3600 / 2) << "most of the time somebody leads";
    EXPECT_GT(changes, 250) << "and leadership moves";
}

TEST(LeaseText, CarriesTheVersionItReplacesAndCountsTransitions) {
    const auto at = std::chrono::system_clock::time_point{} + seconds(1'796'608'923) + std::chrono::microseconds(4);
    const LeaseRecord over = held("other", "77");
    const auto text = lease_text("ns", "ossa-controller", "me", {}, &over, false, at);
    const auto document = json::Document::from(text);
    ASSERT_TRUE(document) << text;
    const auto root = document->root();
    EXPECT_EQ(root.pointer("/metadata/resourceVersion").string_or(""), "77");
    EXPECT_EQ(root.pointer("/spec/leaseTransitions").int64_or(0), 4);
    EXPECT_EQ(root.pointer("/spec/holderIdentity").string_or(""), "me");
    EXPECT_EQ(root.pointer("/spec/renewTime").string_or(""), "2026-12-07T02:02:03.000004Z");
    const LeaseRecord read = lease_record_of(root);
    EXPECT_EQ(read.duration_seconds, 15);
    // A renewal keeps the time of acquisition and the count.
    const auto again = json::Document::from(lease_text("ns", "n", "me", {}, &read, true, at + seconds(9)));
    EXPECT_EQ(again->root().pointer("/spec/leaseTransitions").int64_or(0), 4);
    EXPECT_EQ(again->root().pointer("/spec/acquireTime").string_or(""), read.acquire_time);
    const auto released = json::Document::from(released_lease_text("ns", "n", read, at));
    EXPECT_EQ(released->root().pointer("/spec/holderIdentity").string_or("-"), "");
    EXPECT_EQ(released->root().pointer("/spec/leaseDurationSeconds").int64_or(0), 1);
}

}  // namespace
}  // namespace ossa::kube
