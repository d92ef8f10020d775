#include "validator/input.hpp"

#include <gtest/gtest.h>

namespace ossa::validator {
namespace {

TEST(Patterns, StayWithinAFolderUnlessTheySayOtherwise) {
    EXPECT_TRUE(matches("*.yaml", "a.yaml"));
    EXPECT_FALSE(matches("*.yaml", "b/a.yaml"));
    EXPECT_TRUE(matches("*/*.yaml", "b/a.yaml"));
    EXPECT_TRUE(matches("**/*.yaml", "a.yaml"));
    EXPECT_TRUE(matches("**/*.yaml", "b/c/a.yaml"));
    EXPECT_TRUE(matches("b/**", "b/c/a.yaml"));
    EXPECT_FALSE(matches("b/**/x.yaml", "b/c/a.yaml"));
    EXPECT_TRUE(matches("b/**/a.*ml", "b/c/d/a.yaml"));
    EXPECT_TRUE(matches("a?[0-9].[!x]*", "ab7.yaml"));
    EXPECT_FALSE(matches("a[!b]", "ab"));
    EXPECT_FALSE(matches("a[", "ab"));
    EXPECT_FALSE(matches("?", "/"));
}

TEST(Patterns, DoNotTakeForEver) {
    EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*a*a*b", std::string(2000, 'a')));
    EXPECT_FALSE(matches("**a**a**a**a**a**a**b", std::string(2000, 'a')));
}

}  // namespace
}  // namespace ossa::validator
