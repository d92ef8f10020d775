#include "kube/types/quantity.hpp"

#include <gtest/gtest.h>

#include <string>

using ossa::kube::Quantity;

namespace {

// `text` is the same amount as `same_as`.
void check(std::string_view text, std::string_view same_as) {
    const auto a = Quantity::parse(text);
    const auto b = Quantity::parse(same_as);
    ASSERT_TRUE(a.has_value()) << text << ": " << a.error();
    ASSERT_TRUE(b.has_value()) << same_as << ": " << b.error();
    EXPECT_TRUE(*a == *b) << text << " against " << same_as;
}

void refuse(std::string_view text, std::string_view words) {
    const auto got = Quantity::parse(text);
    ASSERT_FALSE(got.has_value()) << text;
    EXPECT_NE(got.error().find(words), std::string_view::npos) << text << ": " << got.error();
}

bool less(std::string_view a, std::string_view b) {
    return *Quantity::parse(a) < *Quantity::parse(b);
}

}  // namespace

TEST(Quantity, KnowsEverySuffix) {
    check("1000000000n", "1");
    check("1000000u", "1");
    check("1000m", "1");
    check("1k", "1000");
    check("1M", "1000k");
    check("1G", "1000M");
    check("1T", "1000G");
    check("1P", "1000T");
    check("1E", "1000P");
    check("1Ki", "1024");
    check("1Mi", "1024Ki");
    check("1Gi", "1024Mi");
    check("1Ti", "1024Gi");
    check("1Pi", "1024Ti");
    check("1Ei", "1024Pi");
}

TEST(Quantity, KnowsSignsPointsAndExponents) {
    check("+5", "5");
    check("5.", "5");
    check(".5", "500m");
    check("0.5", "500m");
    check("005", "5");
    check("1e3", "1k");
    check("1E3", "1k");
    check("1e+3", "1k");
    check("12e-1", "1200m");
    check("1.5Gi", "1536Mi");
    check("0.5Ki", "512");
    check("-1.5", "-1500m");
    check("0e999", "0");
    check("1.000000000000000000000000000000", "1");
}

TEST(Quantity, RoundsWhatIsFinerThanNanoAwayFromZero) {
    check("0.1n", "1n");
    check("1.1n", "2n");
    check("-0.1n", "-1n");
    check("0.0000000001", "1n");
    check("1e-999", "1n");
    check("0.00000000001Ki", "11n");  // 10.24
    check("0.3Ki", "307.2");
    check("0.1Ei", "115292150460684697.6");
}

TEST(Quantity, ComparesExactlyWhereDoublesDoNot) {
    EXPECT_TRUE(less("9007199254740992", "9007199254740993"));
    EXPECT_TRUE(less("9223372036854775806", "9223372036854775807"));
    EXPECT_TRUE(less("0.1", "100.000001m"));
    EXPECT_TRUE(less("-1", "-1n"));
    EXPECT_FALSE(less("1Mi", "1M"));
    EXPECT_EQ(Quantity::parse("-2")->sign(), -1);
    EXPECT_EQ(Quantity::parse("-0")->sign(), 0);
    EXPECT_EQ(Quantity::parse("1n")->sign(), 1);
    EXPECT_TRUE(Quantity::of(INT64_MAX) == *Quantity::parse("9223372036854775807"));
    EXPECT_TRUE(Quantity::of(INT64_MIN) < Quantity::of(INT64_MAX));
}

TEST(Quantity, RefusesMoreThanTheLargestInteger) {
    check("9223372036854775807", "9223372036854775807");
    refuse("9223372036854775808", "2^63-1");
    refuse("9223372036854775807.1", "2^63-1");
    refuse("8Ei", "2^63-1");
    refuse("7.9999999999999999999999Ei", "2^63-1");
    refuse("1e999", "2^63-1");
    refuse("999999999999999999999999999999999999999999999999999999999999", "2^63-1");
    refuse("99999999999999999999999999999999999999999999999999999999Ki", "2^63-1");
}

TEST(Quantity, SaysWhatIsWrong) {
    refuse("", "number");
    refuse("-", "number");
    refuse(".", "number");
    refuse("m", "number");
    refuse("abc", "number");
    refuse(" 1", "number");
    refuse("1 ", "end in");
    refuse("1.2.3", "end in");
    refuse("512MB", "end in");
    refuse("512mi", "end in");
    refuse("1K", "end in");
    refuse("1ki", "end in");
    refuse("1i", "end in");
    refuse("1e", "end in");
    refuse("1e+", "exponent");
    refuse("1e5000", "exponent");
    refuse("1e5x", "end in");
    refuse("--1", "number");
    refuse("0x10", "end in");
    refuse("\xD9\xA1", "number");
    refuse(std::string_view("1\0", 2), "end in");
    refuse(std::string(1'000'000, '9'), "64 characters");
    refuse(std::string(1'000'000, '0'), "64 characters");
}
