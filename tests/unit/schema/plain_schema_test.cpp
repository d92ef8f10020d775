#include "schema/plain_schema.hpp"

#include <gtest/gtest.h>

#include <random>

#include "schema/schemas.hpp"

namespace ossa::schema {
namespace {

bool plan_accepts(json::Value schema) {
    RunResult result;
    metaschema_plan().run(schema, {}, result);
    return result.errors.empty();
}

// The one promise: a quick yes is never wrong.
void check_never_wrong(const std::string& text) {
    const auto document = json::Document::from(text).value();
    if (is_plain_schema(document.root())) {
        EXPECT_TRUE(plan_accepts(document.root())) << text;
    }
}

TEST(PlainSchema, SaysYesToWhatPeopleMostlyWrite) {
    const auto document =
        json::Document::from(
            R"({"type":"object","description":"d","required":["a","b"],"properties":{"a":{"type":"string","enum":["x","y"],"default":5},)"
            R"("b":{"type":"array","items":{"type":"integer","minimum":0},"minItems":1,"uniqueItems":true}},"additionalProperties":false})")
            .value();
    EXPECT_TRUE(is_plain_schema(document.root()));
    EXPECT_TRUE(plan_accepts(document.root()));
}

TEST(PlainSchema, IsNeverWrongAboutAnyKeywordWithAnyValue) {
    for (const auto [keyword, ignored] : metaschema().at("properties").members()) {
        for (const char* value : {"5",
                                  "-1",
                                  "1.5",
                                  "0",
                                  "true",
                                  "null",
                                  "\"string\"",
                                  "\"a b\"",
                                  "[]",
                                  "[\"a\"]",
                                  "[\"a\",\"a\"]",
                                  "[1]",
                                  "[{}]",
                                  "[5]",
                                  "{}",
                                  "{\"a\":5}",
                                  "{\"a\":{}}",
                                  "{\"a\":[]}",
                                  "{\"a\":[\"b\",\"b\"]}",
                                  "{\"type\":\"nope\"}",
                                  "{\"type\":[\"string\",\"null\"]}",
                                  "[\"string\",\"string\"]"}) {
            check_never_wrong("{\"" + std::string(keyword) + "\":" + value + "}");
            check_never_wrong("{\"properties\":{\"p\":{\"" + std::string(keyword) + "\":" + value + "}}}");
        }
    }
}

TEST(PlainSchema, IsNeverWrongAboutRandomSchemas) {
    std::mt19937 random(20261201);
    std::vector<std::string> keywords;
    for (const auto [keyword, ignored] : metaschema().at("properties").members()) {
        keywords.emplace_back(keyword);
    }
    const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    const auto make = [&](auto&& self, int depth) -> std::string {
        static const std::vector<std::string> leaves{"5",  "-2", "true", "\"object\"", "[\"a\",\"b\"]",
                                                     "[]", "{}", "null", "0.5"};
        if (depth == 0 || pick(4) == 0) {
            return leaves[pick(leaves.size())];
        }
        std::string out = "{";
        std::vector<std::string> used;
        for (std::size_t i = 0, n = pick(4); i < n; ++i) {
            const std::string keyword = pick(5) == 0 ? "free" : keywords[pick(keywords.size())];
            if (std::find(used.begin(), used.end(), keyword) == used.end()) {
                out += (used.empty() ? "\"" : ",\"") + keyword + "\":" + self(self, depth - 1);
                used.push_back(keyword);
            }
        }
        return out + "}";
    };
    for (int i = 0; i < 20'000; ++i) {
        check_never_wrong(make(make, 4));
    }
}

// Names that are one with a type's as far as some bytes, the size or a zero behind them go.
TEST(PlainSchema, TakesOnlyTheTypesNamesForTypes) {
    for (const char* name :
         {"rtring\\u0000", "string\\u0000", "string\\u0000\\u000e", "string\\u0000\\u0008", "strings", "nul", "nulls",
          "", "null\\u0000\\u0000\\u0000\\u0000", "Object", "booleans", "integer1"}) {
        const auto document = json::Document::from(R"({"type":")" + std::string(name) + R"("})").value();
        EXPECT_FALSE(is_plain_schema(document.root())) << name;
        EXPECT_FALSE(plan_accepts(document.root())) << name;
    }
}

TEST(PlainSchema, LeavesDeepNestingToThePlan) {
    std::string text;
    for (int i = 0; i < 100; ++i) {
        text += R"({"items":)";
    }
    const auto document = json::Document::from(text + "{}" + std::string(100, '}')).value();
    EXPECT_FALSE(is_plain_schema(document.root()));
}

}  // namespace
}  // namespace ossa::schema
