#include "kube/types/work_queue.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ossa::kube {
namespace {

using Queue = WorkQueue<std::string>;
constexpr Queue::Time start{};
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(WorkQueue, AKeyIsInItOnce) {
    Queue queue;
    queue.add("a", start);
    queue.add("a", start);
    EXPECT_EQ(queue.size(), 1U);
    EXPECT_EQ(queue.pop(start), "a");
    EXPECT_EQ(queue.pop(start), std::nullopt);
    queue.done("a");
    EXPECT_EQ(queue.size(), 0U);
}

TEST(WorkQueue, WhatIsAddedWhileWorkedOnComesAgainWhenDone) {
    Queue queue;
    queue.add("a", start);
    EXPECT_EQ(queue.pop(start), "a");
    queue.add("a", start);
    queue.add("a", start + seconds(5));
    EXPECT_EQ(queue.pop(start), std::nullopt) << "two workers never have one key";
    EXPECT_EQ(queue.next_due(), std::nullopt);
    queue.done("a");
    EXPECT_EQ(queue.pop(start), "a");
}

TEST(WorkQueue, TheEarliestOfSeveralTimesWins) {
    Queue queue;
    queue.add("a", start + seconds(9));
    queue.add("b", start + seconds(5));
    queue.add("a", start + seconds(3));
    queue.add("a", start + seconds(7));
    EXPECT_EQ(queue.next_due(), start + seconds(3));
    EXPECT_EQ(queue.pop(start + seconds(2)), std::nullopt);
    EXPECT_EQ(queue.pop(start + seconds(9)), "a");
    EXPECT_EQ(queue.pop(start + seconds(9)), "b");
    EXPECT_EQ(queue.pop(start + seconds(9)), std::nullopt) << "the later times of a are gone";
}

TEST(WorkQueue, KeysThatAreDueTogetherComeInTheOrderOfTheirAdding) {
    Queue queue;
    for (const char* key : {"c", "a", "b"}) {
        queue.add(key, start);
    }
    EXPECT_EQ(queue.pop(start), "c");
    EXPECT_EQ(queue.pop(start), "a");
    EXPECT_EQ(queue.pop(start), "b");
}

TEST(WorkQueue, FailuresBackOffByKeyUntilForgotten) {
    Queue queue(milliseconds(100), seconds(60));
    milliseconds before{0};
    for (int i = 0; i < 14; ++i) {
        queue.add_after_failure("a", start);
        const auto due = queue.next_due();
        ASSERT_TRUE(due);
        const auto wait = std::chrono::duration_cast<milliseconds>(*due - start);
        EXPECT_GE(wait, milliseconds(50));
        EXPECT_LE(wait, seconds(60));
        EXPECT_GE(wait * 2, before);
        before = wait;
        EXPECT_EQ(queue.pop(*due), "a");
        queue.done("a");
    }
    EXPECT_GE(before, seconds(30));
    queue.add_after_failure("b", start);
    EXPECT_LE(*queue.next_due() - start, milliseconds(100)) << "another key's failures are not its own";
    queue.forget("a");
    queue.add_after_failure("a", start);
    EXPECT_LE(*queue.next_due() - start, milliseconds(100));
}

TEST(WorkQueue, DoneOfAnUnknownKeyIsNothing) {
    Queue queue;
    queue.done("a");
    EXPECT_EQ(queue.size(), 0U);
}

}  // namespace
}  // namespace ossa::kube
