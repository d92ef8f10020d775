#include "kube/types/semver.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace ossa::kube;

namespace {

// Each is below the next one.
void check_order(std::initializer_list<std::string_view> rising) {
    for (const auto* a = rising.begin(); a != rising.end(); ++a) {
        for (const auto* b = rising.begin(); b != rising.end(); ++b) {
            const auto order = precedence(*Semver::parse(*a), *Semver::parse(*b));
            EXPECT_EQ(order < 0, a < b) << *a << " against " << *b;
            EXPECT_EQ(order > 0, a > b) << *a << " against " << *b;
        }
    }
}

}  // namespace

TEST(Semver, SplitsAVersion) {
    const auto version = Semver::parse("1.20.3-rc.1-x+build.007-a");
    ASSERT_TRUE(version.has_value());
    EXPECT_EQ(version->major, "1");
    EXPECT_EQ(version->minor, "20");
    EXPECT_EQ(version->patch, "3");
    EXPECT_EQ(version->prerelease, "rc.1-x");
    EXPECT_EQ(version->build, "build.007-a");
}

TEST(Semver, TakesWhatTheStandardTakes) {
    for (const std::string_view text :
         {"0.0.0", "1.0.0-0", "1.0.0--", "1.0.0-0a", "1.0.0+-", "1.0.0-a-b.c+d.e-f", "1.0.0+00"}) {
        EXPECT_TRUE(Semver::parse(text).has_value()) << text;
    }
}

TEST(Semver, RefusesTheRest) {
    for (const std::string_view text :
         {"",       "1",       "1.0",        "1.0.0.0",  "v1.0.0",    "01.0.0",        "1.00.0", "1.0.01",
          "1.0.0-", "1.0.0+",  "1.0.0-a..b", "1.0.0-01", "1.0.0-a_b", "1.0.0+a+b",     " 1.0.0", "1.0.0\n",
          "1.0.x",  ">=1.0.0", "-1.0.0",     "1..0",     "...",       "1.0.0-\xC3\xA4"}) {
        EXPECT_FALSE(Semver::parse(text).has_value()) << text;
    }
}

TEST(Semver, OrdersByPrecedence) {
    check_order({"0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
                 "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0"});
    EXPECT_TRUE(precedence(*Semver::parse("1.0.0+a"), *Semver::parse("1.0.0+b")) == 0);
}

TEST(Semver, NumbersOfAnyLengthNeitherOverflowNorAreSlow) {
    const std::string nines(500'000, '9');
    const std::string longer = "1" + std::string(500'000, '0');
    check_order({"18446744073709551616.0.0", "18446744073709551617.0.0"});
    check_order({"1.0.0-18446744073709551616", "1.0.0-18446744073709551617"});
    check_order({nines + ".0.0", longer + ".0.0"});
    std::string dotted = "1.0.0-a";
    for (int i = 0; i < 300'000; ++i) {
        dotted += ".a";
    }
    EXPECT_TRUE(Semver::parse(dotted).has_value());
    EXPECT_FALSE(Semver::parse(dotted + "!").has_value());
    EXPECT_TRUE(precedence(*Semver::parse(dotted), *Semver::parse(dotted)) == 0);
}
