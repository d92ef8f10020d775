#include "schema/text.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace ossa::schema;

namespace {

const std::vector<std::string_view> members{"image", "command", "resources", "health_check", "initial_delay_seconds",
                                            "type"};
const std::vector<std::string_view> auths{"none", "api_key", "jwt", "oauth2", "mtls"};
const std::vector<std::string_view> frameworks{"fedramp-low", "fedramp-moderate", "fedramp-high", "iso27001",
                                               "soc2-type1",  "soc2-type2",       "hipaa",        "nist-800-53"};

void check_name(std::string_view typed, std::string_view want) {
    EXPECT_EQ(nearest_name(typed, members).value_or(""), want) << typed;
}

void check_values(std::string_view typed, const std::vector<std::string_view>& allowed,
                  const std::vector<std::string_view>& want) {
    EXPECT_EQ(similar_values(typed, allowed), want) << typed;
}

}  // namespace

TEST(Text, AnEqualNameInAnotherSpellingComesFirst) {
    check_name("healthCheck", "health_check");
    check_name("health-check", "health_check");
    check_name("HEALTH_CHECK", "health_check");
    check_name("initialDelaySeconds", "initial_delay_seconds");
    EXPECT_EQ(nearest_name("a_b", std::vector<std::string_view>{"a.c", "aB"}), "aB");
}

TEST(Text, AMistypedNameIsFoundWithinAThirdOfItsLength) {
    check_name("imgae", "image");
    check_name("imag", "image");
    check_name("resorces", "resources");
    check_name("comand", "command");
    check_name("healthchek", "health_check");
    check_name("replicas", "");
    check_name("tools", "");
    check_name("", "");
    check_name("x", "");
}

TEST(Text, DistanceCountsASwapAsOneStepAndStopsAtItsLimit) {
    EXPECT_EQ(edit_distance("abc", "abc", 3), 0U);
    EXPECT_EQ(edit_distance("abc", "acb", 3), 1U);
    EXPECT_EQ(edit_distance("", "abc", 3), 3U);
    EXPECT_EQ(edit_distance("kitten", "sitting", 3), 3U);
    EXPECT_EQ(edit_distance("kitten", "sitting", 2), 3U);
    EXPECT_EQ(edit_distance("abcdef", "uvwxyz", 2), 3U);
}

TEST(Text, AValueIsFoundBySpellingByItsOtherWordByItsBeginningThenByTyping) {
    check_values("api-key", auths, {"api_key"});
    check_values("API_KEY", auths, {"api_key"});
    check_values("mutual-tls", auths, {"mtls"});
    check_values("mTLS", auths, {"mtls"});
    check_values("bearer-token", auths, {"jwt"});
    check_values("oauth", auths, {"oauth2"});
    check_values("fedramp", frameworks, {"fedramp-low", "fedramp-moderate", "fedramp-high"});
    check_values("SOC2", frameworks, {"soc2-type1", "soc2-type2"});
    check_values("ISO-27001", frameworks, {"iso27001"});
    check_values("hippa", frameworks, {"hipaa"});
    check_values("zebra", frameworks, {});
    check_values("", frameworks, {});
}

TEST(Text, AsksInWords) {
    EXPECT_EQ(did_you_mean("mutual-tls", auths), R"(did you mean "mtls"?)");
    EXPECT_EQ(did_you_mean("fedramp", frameworks),
              R"(did you mean "fedramp-low", "fedramp-moderate" or "fedramp-high"?)");
    EXPECT_EQ(did_you_mean("zebra", frameworks), "");
}

TEST(Text, LongTextsAreNotGuessedAt) {
    const std::string huge(1'000'000, 'a');
    check_name(huge, "");
    check_values(huge, auths, {});
    EXPECT_EQ(nearest_name("image", std::vector<std::string_view>{huge}), std::nullopt);
}
