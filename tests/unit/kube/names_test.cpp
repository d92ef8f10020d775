#include "kube/types/names.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace ossa::kube;

namespace {

enum class Want : bool { refused, good };

void check(NameProblem problem, Want want, std::string_view text) {
    EXPECT_EQ(!problem.has_value(), want == Want::good) << text << ": " << problem.value_or("");
}

}  // namespace

TEST(Names, ALabelOfRfc1035StartsWithALetter) {
    for (const std::string_view text : {"a", "abc", "a-b", "a1", "a--b"}) {
        check(dns1035_label(text), Want::good, text);
    }
    for (const std::string_view text : {"", "1a", "-a", "a-", "A", "a.b", "a_b", "a b", "\xC3\xA4", "a\n"}) {
        check(dns1035_label(text), Want::refused, text);
    }
}

TEST(Names, ALabelOfRfc1123MayStartWithADigit) {
    check(dns1123_label("1a"), Want::good, "1a");
    check(dns1123_label("-1"), Want::refused, "-1");
}

TEST(Names, ASubdomainIsLabelsAndDots) {
    for (const std::string_view text : {"a", "a.b", "1.2.3", "a-b.c"}) {
        check(dns1123_subdomain(text), Want::good, text);
    }
    for (const std::string_view text : {"", ".", "a.", ".a", "a..b", "a-.b", "a.-b", "A.b"}) {
        check(dns1123_subdomain(text), Want::refused, text);
    }
}

TEST(Names, APrefixMayEndWithADash) {
    check(dns1035_prefix("scan-", 45), Want::good, "scan-");
    check(dns1035_prefix("-", 45), Want::refused, "-");
    check(dns1035_prefix("1-", 45), Want::refused, "1-");
}

TEST(Names, LengthIsJudgedFirstAndCheaply) {
    check(dns1035_label(std::string(50, 'a'), 50), Want::good, "50");
    check(dns1035_label(std::string(51, 'a'), 50), Want::refused, "51");
    check(dns1123_subdomain(std::string(253, 'a')), Want::good, "253");
    const std::string huge(1'000'000, 'a');
    EXPECT_EQ(dns1035_label(huge), "is too long");
    EXPECT_EQ(dns1123_label(huge), "is too long");
    EXPECT_EQ(dns1123_subdomain(huge), "is too long");
    EXPECT_EQ(dns1035_prefix(huge, 45), "is too long");
}
