#include "kube/types/duration.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace std::chrono_literals;
using ossa::kube::parse_duration;

namespace {

void check(std::string_view text, std::chrono::nanoseconds want) {
    const auto got = parse_duration(text);
    ASSERT_TRUE(got.has_value()) << text << ": " << got.error();
    EXPECT_EQ(*got, want) << text;
}

void refuse(std::string_view text, std::string_view words) {
    const auto got = parse_duration(text);
    ASSERT_FALSE(got.has_value()) << text;
    EXPECT_NE(got.error().find(words), std::string_view::npos) << text << ": " << got.error();
}

}  // namespace

TEST(Duration, ReadsWhatGoWrites) {
    check("0", 0ns);
    check("-0", 0ns);
    check("5s", 5s);
    check("1h30m", 90min);
    check("300ms", 300ms);
    check("1.5s", 1500ms);
    check("1.s", 1s);
    check(".5m", 30s);
    check("-2m", -2min);
    check("+2m", 2min);
    check("10us", 10us);
    check("10\xC2\xB5s", 10us);
    check("10\xCE\xBCs", 10us);
    check("7ns", 7ns);
    check("1m1ms1ns", 1min + 1ms + 1ns);
    check("0.0000000001h", 360ns);
    check("0.9999999999ns", 0ns);
    check("9223372036854775807ns", std::chrono::nanoseconds::max());
}

TEST(Duration, SaysWhatIsWrong) {
    refuse("", "numbers with units");
    refuse("-", "numbers with units");
    refuse("s", "numbers with units");
    refuse(".s", "numbers with units");
    refuse("5", "unit");
    refuse("5 s", "unit");
    refuse("5d", "unit");
    refuse("1h30", "unit");
    refuse("5s ", "numbers with units");
    refuse("1e3s", "unit");
    refuse("5S", "unit");
    refuse("9223372036854775808ns", "292 years");
    refuse("2562048h", "292 years");
}

TEST(Duration, HostileLengthsAreRefusedInLinearTime) {
    refuse(std::string(1'000'000, '9'), "292 years");
    refuse(std::string(1'000'000, '0'), "unit");
    refuse("0." + std::string(1'000'000, '1'), "unit");
    std::string many;
    for (int i = 0; i < 300'000; ++i) {
        many += "1ns";
    }
    check(many, 300'000ns);
}
