#include "kube/types/watch.hpp"

#include <gtest/gtest.h>

namespace ossa::kube {
namespace {

using Effect = WatchMachine::Effect;

// Plays a script against a WatchMachine and keeps what a Store would.
struct Played {
    WatchMachine machine{7};

    Effect event(const std::string& text) {
        auto document = json::Document::from(text);
        EXPECT_TRUE(document) << text;
        return machine.on_event(document->root());
    }
    Effect change(const std::string& type, const std::string& version) {
        return event(R"({"type":")" + type + R"(","object":{"metadata":{"name":"a","resourceVersion":")" + version +
                     R"("}}})");
    }
    Effect bookmark(const std::string& version, bool end = false) {
        return event(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":")" + version + R"(")" +
                     (end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "") + "}}}");
    }
    Effect error(int code, const std::string& reason) {
        return event(R"({"type":"ERROR","object":{"kind":"Status","code":)" + std::to_string(code) + R"(,"reason":")" +
                     reason + R"(","message":"m"}})");
    }
    template <class Step>
    bool is() const {
        return std::holds_alternative<Step>(machine.step());
    }
    WatchMachine::Watch watch() const {
        EXPECT_TRUE(is<WatchMachine::Watch>());
        return is<WatchMachine::Watch>() ? std::get<WatchMachine::Watch>(machine.step()) : WatchMachine::Watch{};
    }
    std::chrono::milliseconds sleep() {
        EXPECT_TRUE(is<WatchMachine::Sleep>());
        const auto time = is<WatchMachine::Sleep>() ? std::get<WatchMachine::Sleep>(machine.step()).duration
                                                    : std::chrono::milliseconds{-1};
        machine.on_slept();
        return time;
    }
    void sync() {
        EXPECT_TRUE(watch().initial);
        EXPECT_EQ(machine.on_watch_opened(), Effect::begin);
        EXPECT_EQ(change("ADDED", "5"), Effect::put);
        EXPECT_EQ(bookmark("9", true), Effect::swap);
        EXPECT_TRUE(is<WatchMachine::Read>());
    }
};

TEST(WatchMachine, StreamsTheInitialListAndSwapsAtItsEnd) {
    Played p;
    EXPECT_TRUE(p.machine.replacing());
    p.sync();
    EXPECT_FALSE(p.machine.replacing());
    EXPECT_EQ(p.machine.version(), "9");
    EXPECT_EQ(p.change("MODIFIED", "11"), Effect::put);
    EXPECT_EQ(p.change("DELETED", "12"), Effect::remove);
    EXPECT_EQ(p.bookmark("20"), Effect::note);
    EXPECT_EQ(p.machine.version(), "20");
}

TEST(WatchMachine, ABookmarkAmongTheInitialEventsEndsNothing) {
    Played p;
    p.machine.on_watch_opened();
    EXPECT_EQ(p.bookmark("7"), Effect::nothing);
    EXPECT_TRUE(p.machine.replacing());
}

TEST(WatchMachine, AProductiveWatchThatEndsGoesOnAtOnceFromItsVersion) {
    Played p;
    p.sync();
    p.change("MODIFIED", "11");
    p.machine.on_watch_ended();
    EXPECT_EQ(p.watch().from_version, "11");
    EXPECT_FALSE(p.watch().initial);
    EXPECT_EQ(p.machine.on_watch_opened(), Effect::nothing);
}

// R047: a watch that ends at once, again and again, must not become a hot loop.
TEST(WatchMachine, R047_WatchesThatBringNothingWaitLongerEachTime) {
    Played p;
    p.sync();
    p.machine.on_watch_ended();
    std::chrono::milliseconds before{0};
    for (int i = 0; i < 6; ++i) {
        p.machine.on_watch_opened();
        p.machine.on_watch_ended();
        const auto time = p.sleep();
        EXPECT_GE(time, std::chrono::seconds(1)) << i;
        EXPECT_GE(time * 2, before) << i;
        EXPECT_LE(time, std::chrono::seconds(30)) << i;
        before = time;
        EXPECT_EQ(p.watch().from_version, "9");
    }
}

// R045, R046: 410 comes as an answer or as an ERROR event. The lost version is not asked for again, and only the first
// new beginning is free.
TEST(WatchMachine, R046_ALostPlaceBeginsAnewAndThenOnlyWithBackOff) {
    for (const bool as_event : {false, true}) {
        Played p;
        p.sync();
        const auto lose = [&] {
            if (as_event) {
                EXPECT_EQ(p.error(410, "Expired"), Effect::nothing);
            } else {
                p.machine.on_watch_ended();
                p.machine.on_failure(Error{ErrorCode::gone, "410"});
            }
        };
        lose();
        EXPECT_TRUE(p.machine.replacing());
        p.sync();
        lose();
        EXPECT_GE(p.sleep(), std::chrono::seconds(10));
        EXPECT_TRUE(p.watch().initial);
        EXPECT_EQ(p.watch().from_version, "");
        // Something real came since: the next loss is free again.
        p.sync();
        p.change("MODIFIED", "30");
        lose();
        EXPECT_TRUE(p.watch().initial);
    }
}

TEST(WatchMachine, AServerWithoutStreamingListsIsListedPageByPage) {
    for (const ErrorCode code : {ErrorCode::invalid, ErrorCode::forbidden}) {
        Played p;
        p.machine.on_failure(Error{code, "sendInitialEvents is forbidden for watch"});
        ASSERT_TRUE(p.is<WatchMachine::List>());
        EXPECT_EQ(p.machine.on_page("40", "next"), Effect::nothing);
        ASSERT_TRUE(p.is<WatchMachine::List>());
        EXPECT_EQ(std::get<WatchMachine::List>(p.machine.step()).continue_token, "next");
        EXPECT_EQ(p.machine.on_page("40", ""), Effect::swap);
        EXPECT_EQ(p.watch().from_version, "40");
        // It stays so.
        p.machine.on_failure(Error{ErrorCode::gone, "410"});
        EXPECT_TRUE(p.is<WatchMachine::List>());
    }
}

TEST(WatchMachine, ALateContinueTokenListsAnew) {
    Played p;
    p.machine.on_failure(Error{ErrorCode::invalid, "no"});
    p.machine.on_page("40", "next");
    p.machine.on_failure(Error{ErrorCode::gone, "the token is too old"});
    ASSERT_TRUE(p.is<WatchMachine::List>());
    EXPECT_EQ(std::get<WatchMachine::List>(p.machine.step()).continue_token, "");
}

// Each step in turn fails, in each way: never a hot loop, never a swap of half a list, always back in the end.
TEST(WatchMachine, EveryStepFailsOnceAndItRecovers) {
    for (int failing = 0; failing < 5; ++failing) {
        for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::deadline, ErrorCode::unauthenticated,
                                     ErrorCode::throttled, ErrorCode::internal}) {
            Played p;
            int swaps = 0;
            bool failed = false;
            int sleeps = 0;
            for (int step = 0; step < 40 && swaps < (failing < 3 ? 1 : 2); ++step) {
                if (p.is<WatchMachine::Sleep>()) {
                    EXPECT_GE(p.sleep(), std::chrono::seconds(1));
                    ++sleeps;
                    continue;
                }
                const bool opening = p.is<WatchMachine::Watch>();
                const int at = opening ? (p.machine.replacing() ? 0 : 3) : (p.machine.replacing() ? 1 + (step % 2) : 4);
                if (!failed && at == failing) {
                    failed = true;
                    p.machine.on_failure(Error{code, "scripted"});
                    continue;
                }
                if (opening) {
                    p.machine.on_watch_opened();
                } else if (p.machine.replacing()) {
                    p.change("ADDED", "5");
                    if (p.bookmark("9", true) == Effect::swap) {
                        ++swaps;
                    }
                } else {
                    p.change("MODIFIED", std::to_string(10 + step));
                    p.machine.on_watch_ended();
                    ++swaps;  // stands for "went on"
                }
            }
            EXPECT_GE(swaps, 1) << failing;
            if (failed) {
                EXPECT_EQ(sleeps, 1) << failing;
            }
        }
    }
}

TEST(WatchMachine, AnInitialListThatEndsEarlyIsNotSwappedIn) {
    Played p;
    p.machine.on_watch_opened();
    p.change("ADDED", "5");
    p.machine.on_watch_ended();
    EXPECT_TRUE(p.machine.replacing());
    EXPECT_GE(p.sleep(), std::chrono::seconds(1));
    EXPECT_TRUE(p.watch().initial);
}

TEST(WatchMachine, WhatIsNoEventIsAFailure) {
    for (const std::string text : {R"({"type":"ADDED","object":{}})",
                                   R"({"type":"NEW","object":{"metadata":{"resourceVersion":"1"}}})", "[]", "7"}) {
        Played p;
        p.sync();
        EXPECT_EQ(p.event(text), Effect::nothing);
        EXPECT_TRUE(p.is<WatchMachine::Sleep>()) << text;
        EXPECT_NE(p.machine.reason(), "");
    }
}

}  // namespace
}  // namespace ossa::kube
