// Worst cases through the library: a verdict for each, work that grows with the size and no more, no crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/json.hpp"
#include "schema/plan.hpp"
#include "schema/rules.hpp"
#include "schema/schemas.hpp"

namespace ossa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view good =
    R"({"ossaVersion":"1.0","agent":{"id":"scanner","name":"Scanner","version":"1.2.0","role":"compliance","runtime":{"type":"k8s"},)"
    R"("capabilities":[{"name":"scan","description":"scans","input_schema":{"type":"object"},"output_schema":"https://example.org/o.json"}]}})";

std::string with(std::string_view from, const std::string& to) {
    std::string out{good};
    const std::size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return out.replace(at, from.size(), to);
}

json::Document parse(std::string_view text) {
    auto document = json::Document::from(text);
    EXPECT_TRUE(document) << text.substr(0, 200) << ": " << document.error().message();
    return std::move(*document);
}

schema::RunResult judge(std::string_view text) {
    const json::Document document = parse(text);
    schema::RunResult result;
    schema::ossa_plan().run(document.root(), {.base_pointer = "", .collect_fills = true, .collect_unknown = true},
                            result);
    return result;
}

std::vector<std::string> errors(const schema::RunResult& result) {
    std::vector<std::string> out;
    for (const kube::Finding& finding : result.errors) {
        out.push_back(finding.pointer + " " + finding.rule);
        EXPECT_LT(finding.found.size() + finding.message.size() + finding.hint.size(), 1000U) << finding.pointer;
    }
    return out;
}

TEST(Hostile, TheDocumentThatTheCasesStartFromIsGood) {
    EXPECT_THAT(errors(judge(good)), IsEmpty());
}

TEST(Hostile, AMegabyteOfIdOrVersion) {
    const std::string many(1'000'000, 'a');
    EXPECT_THAT(errors(judge(with("scanner", many))), ElementsAre("/agent/id schema/maxLength"));
    EXPECT_THAT(errors(judge(with("scanner", many + "-"))),
                ElementsAre("/agent/id schema/maxLength", "/agent/id schema/pattern"));
    EXPECT_THAT(errors(judge(with("1.2.0", "1.2.0-" + many))), IsEmpty());
    EXPECT_THAT(errors(judge(with("1.2.0", "1.2.0-" + many + "+" + many + "+"))),
                ElementsAre("/agent/version schema/pattern"));
    EXPECT_THAT(errors(judge(with("1.2.0", std::string(1'000'000, '1')))),
                ElementsAre("/agent/version schema/pattern"));
    EXPECT_THAT(errors(judge(with("Scanner", many))), ElementsAre("/agent/name schema/maxLength"));
}

// Every pattern at a place of a schema; a *property* called "pattern" is none.
void collect_patterns(json::Value at, std::set<std::string>& out) {
    for (const auto [keyword, value] : at.members()) {
        if (keyword == "properties") {
            for (const auto [name, property] : value.members()) {
                collect_patterns(property, out);
            }
        } else if (keyword == "pattern") {
            out.insert(std::string(value.string_or("")));
        } else if (value.is_object()) {
            collect_patterns(value, out);
        } else {
            for (const json::Value element : value.elements()) {
                collect_patterns(element, out);
            }
        }
    }
}

TEST(Hostile, LongTextsAgainstEveryPatternAndFormat) {
    std::set<std::string> patterns;
    for (const json::Value schema :
         {schema::ossa_schema(), schema::agent_spec_schema(), schema::tenant_quota_spec_schema()}) {
        collect_patterns(schema, patterns);
    }
    EXPECT_GE(patterns.size(), 6U);
    std::vector<std::string> schemas{R"({"format":"uri"})"};
    for (const std::string& pattern : patterns) {
        std::string quoted;
        json::append_quoted(quoted, pattern);
        schemas.push_back("{\"pattern\":" + quoted + "}");
    }
    for (const std::string& text : schemas) {
        const auto plan = schema::Plan::compile(parse(text).root());
        ASSERT_TRUE(plan) << text;
        for (const std::string& start :
             {std::string(), std::string("1.0.0-"), std::string("http://"), std::string("http://h/?")}) {
            for (const char* piece :
                 {"a", "0", "-", ".", "a.", "-a", "0.", "a-", "%41", "[", "::", "1h", "😀", "/", "*."}) {
                std::string value = start;
                while (value.size() < 200'000) {
                    value += piece;
                }
                for (const char* end : {"", "!", "\\n", "-"}) {
                    const json::Document document = parse("\"" + value + end + "\"");
                    schema::RunResult result;
                    plan->run(document.root(), {}, result);
                    EXPECT_LE(result.errors.size(), 1U);
                    EXPECT_EQ(result.steps, 1U);
                }
            }
        }
    }
}

std::string with_capabilities(int n, std::string_view capability) {
    std::string list;
    for (int i = 0; i < n; ++i) {
        list.append(i == 0 ? "" : ",").append(capability);
    }
    std::string out{good};
    const std::size_t at = out.find("\"capabilities\":[") + sizeof("\"capabilities\":[") - 1;
    return out.replace(at, out.size() - at - 3, list);
}

TEST(Hostile, WorkGrowsWithTheNumberOfCapabilitiesAndNoMore) {
    for (const char* capability :
         {R"({"name":"a","description":"b","input_schema":{},"output_schema":"https://example.org/a"})", "{}",
          R"({"name":1,"descriptio":2,"input_schema":3,"output_schema":"no uri","x":{"y":[]}})"}) {
        const auto steps = [&](int n) { return judge(with_capabilities(n, capability)).steps; };
        const std::uint64_t one_more = steps(2) - steps(1);
        const schema::RunResult small = judge(with_capabilities(1'000, capability));
        const schema::RunResult large = judge(with_capabilities(10'000, capability));
        EXPECT_LE(large.steps, small.steps + 9'000 * one_more) << capability;
        EXPECT_LE(large.errors.size(), 1'010U) << capability;
        EXPECT_LE(large.unknown.size(), 1'000U) << capability;
        if (large.errors.empty()) {
            EXPECT_EQ(large.steps, small.steps + 9'000 * one_more);
            EXPECT_EQ(large.fills.size(), 10'000U);
        }
    }
}

TEST(Hostile, R016_SevenMebibytesOfBrackets) {
    for (const char* piece : {"[", "{\"a\":", "[{\"\":"}) {
        std::string text;
        while (text.size() + 8 < std::size_t{7} << 20) {
            text += piece;
        }
        const auto document = json::Document::from(text);
        ASSERT_FALSE(document);
        EXPECT_THAT(document.error().message(), HasSubstr("nested too deeply"));
        EXPECT_EQ(json::find_string(text, {"request", "uid"}), std::nullopt);
    }
}

// ---------------------------------------------------------------------------------------------- inline schemas

kube::Findings warn(const std::string& inline_schema, std::uint64_t steps_max = 100'000) {
    const json::Document document = parse(with(R"({"type":"object"})", inline_schema));
    kube::Findings out;
    schema::warn_inline_schemas(document.root().at("agent"), "/agent", schema::metaschema_plan(), steps_max, out);
    return out;
}

TEST(Hostile, AnInlineSchemaThatRefersToItselfIsOnlyRead) {
    EXPECT_THAT(warn(R"({"$ref":"#"})"), IsEmpty());
    EXPECT_THAT(
        warn(
            R"({"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}},"allOf":[{"$ref":"#/definitions/a"}]})"),
        IsEmpty());
}

TEST(Hostile, AnInlineSchemaIsNeverExecuted) {
    EXPECT_THAT(warn(R"({"pattern":"^(a+)+$","patternProperties":{"(a*)*b":{}}})"), IsEmpty());
    EXPECT_THAT(warn(R"({"pattern":"("})"), IsEmpty());
}

TEST(Hostile, TwentyNestedLevelsOfAnyOf) {
    for (const char* keyword : {"anyOf", "oneOf", "allOf", "items"}) {
        std::string inner_good = R"({"type":"string"})";
        std::string inner_bad = R"({"type":"strin"})";
        for (int i = 0; i < 20; ++i) {
            for (std::string* inner : {&inner_good, &inner_bad}) {
                *inner = "{\"" + std::string(keyword) + "\":[{\"type\":\"null\"}," + *inner + "]}";
            }
        }
        EXPECT_THAT(warn(inner_good), IsEmpty()) << keyword;
        const kube::Findings found = warn(inner_bad);
        ASSERT_EQ(found.size(), 1U) << keyword;
        EXPECT_EQ(found[0].rule, "agent/inline-schema") << keyword;
    }
}

TEST(Hostile, ManyInlineSchemasEndAtTheBudget) {
    std::string wide = R"({"properties":{"a":{})";
    for (int i = 0; i < 50'000; ++i) {
        wide += ",\"p" + std::to_string(i) + "\":{\"type\":[\"string\"]}";
    }
    const kube::Findings found = warn(wide + "}}");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rule, "agent/inline-schema-not-checked");
}

// ---------------------------------------------------------------------------------------------- texts, both readers

// Behind this much white space a text is read by RapidJSON instead of simdjson.
const std::string& ballast() {
    static const std::string spaces(std::size_t{257} << 10, ' ');
    return spaces;
}

// Both readers must give the same verdict, and equal values.
void check_text(std::string_view text, bool good_json) {
    const auto small = json::Document::from(text);
    const auto large = json::Document::from(ballast() + std::string(text));
    const std::string shown = ::testing::PrintToString(std::string(text.substr(0, 120)));
    EXPECT_EQ(small.has_value(), good_json) << shown;
    EXPECT_EQ(large.has_value(), good_json) << shown << " behind white space";
    if (small && large) {
        EXPECT_TRUE(json::equal(small->root(), large->root())) << shown;
        EXPECT_EQ(json::to_text(small->root()), json::to_text(large->root())) << shown;
    }
}

TEST(Hostile, NumbersOfEverySpelling) {
    for (const char* number : {"0",
                               "-0",
                               "-0.0",
                               "0.0",
                               "1",
                               "-1",
                               "30",
                               "30.0",
                               "3e1",
                               "3E+1",
                               "3e+01",
                               "300e-1",
                               "0e0",
                               "0e400",
                               "0.0e400",
                               "-0e999",
                               "1e-400",
                               "0.0000000001e310",
                               "1e308",
                               "-1.7976931348623157e308",
                               "5e-324",
                               "2.2250738585072011e-308",
                               "9007199254740993",
                               "9223372036854775807",
                               "9223372036854775808",
                               "-9223372036854775808",
                               "-9223372036854775809",
                               "18446744073709551615",
                               "18446744073709551616",
                               "18446744073709552000",
                               "123456789012345678901234567890",
                               "0.1",
                               "1.0000000000000002",
                               "7.2057594037927933e16",
                               "8.5e-5",
                               "1e00000000000000000001",
                               "1e-99999999999999999999",
                               "179769313486231580793e289"}) {
        check_text(number, true);
        check_text("[" + std::string(number) + "]", true);
        check_text("{\"a\":" + std::string(number) + "}", true);
    }
    for (const char* number : {"1e400",     "-1e400", "1e309", "1.8e308", "1e99999999999999999999",
                               "01",        "-01",    "00",    "+1",      "1.",
                               ".5",        "-",      "-a",    "1e",      "1e+",
                               "1.e1",      "0x1",    "1_000", "NaN",     "Infinity",
                               "-Infinity", "1 2",    "--1",   "1f",      "١"}) {
        check_text(number, false);
        check_text("[" + std::string(number) + "]", false);
    }
    check_text("[" + std::string(400, '9') + "]", false);
    check_text("[" + std::string(400, '9') + "e-395,\"0e400\",-0e400,\"\\\"0e400\"]", true);
    check_text("[0e400,1e400]", false);
    check_text("[0e400,01e400]", false);
    check_text("[0e400", false);
    check_text("[0." + std::string(5000, '3') + "]", true);
    check_text("[1" + std::string(300, '0') + "." + std::string(2000, '7') + "]", true);
}

TEST(Hostile, R023_RepeatedNamesAreRefusedWhereverTheyStand) {
    check_text(R"({"a":1,"a":1})", false);
    check_text(R"({"a":1,"b":{"c":[{"d":1,"e":2,"d":3}]}})", false);
    check_text(R"({"":1,"":2})", false);
    check_text(R"({"a":1,"\u0061":2})", false);
    check_text(R"({"a\u0000":1,"a":2})", true);
    check_text(R"({"a":1,"A":2})", true);
    for (const int members : {2, 23, 24, 25, 26, 100, 5'000}) {
        std::string text = "{";
        for (int i = 0; i < members; ++i) {
            text += (i == 0 ? "\"member-number-" : ",\"member-number-") + std::to_string(i) + "\":0";
        }
        check_text(text + "}", true);
        check_text(text + ",\"member-number-0\":1}", false);
        check_text(text + ",\"member-number-" + std::to_string(members - 1) + "\":1}", false);
        check_text("[" + text + "}," + text + "}]", true);
    }
}

TEST(Hostile, InvalidUtf8) {
    using namespace std::string_literals;
    for (const std::string& bytes : {"\x80"s,
                                     "\xBF"s,
                                     "\xC0\x80"s,
                                     "\xC1\xBF"s,
                                     "\xC3"s,
                                     "\xC3("s,
                                     "\xE0\x80\x80"s,
                                     "\xE0\x9F\xBF"s,
                                     "\xE2\x82"s,
                                     "\xE2(\xA1"s,
                                     "\xED\xA0\x80"s,
                                     "\xED\xBF\xBF"s,
                                     "\xF0\x80\x80\x80"s,
                                     "\xF0\x8F\xBF\xBF"s,
                                     "\xF0\x90\x8D"s,
                                     "\xF4\x90\x80\x80"s,
                                     "\xF5\x80\x80\x80"s,
                                     "\xF8\x88\x80\x80\x80"s,
                                     "\xFE"s,
                                     "\xFF"s,
                                     "\0"s,
                                     "\x01"s,
                                     "\x1F"s,
                                     "\n"s,
                                     "\t"s}) {
        check_text("\"" + bytes + "\"", false);
        check_text("{\"" + bytes + "\":1}", false);
        check_text("[\"fine\",\"long enough to fill a vector register " + bytes + "\"]", false);
        if (bytes != "\n" && bytes != "\t") {
            check_text("[1]" + bytes, false);
        }
    }
    for (const std::string& bytes : {"\x7F"s, "\xC2\x80"s, "\xE0\xA0\x80"s, "\xED\x9F\xBF"s, "\xEE\x80\x80"s,
                                     "\xEF\xBF\xBF"s, "\xF0\x90\x80\x80"s, "\xF4\x8F\xBF\xBF"s, "\xEF\xBB\xBF"s}) {
        check_text("\"" + bytes + "\"", true);
    }
}

TEST(Hostile, EscapesOfHalfCharacters) {
    check_text(R"("\ud83d\ude00")", true);
    check_text(R"("\u0000")", true);
    for (const char* text :
         {R"("\ud83d")", R"("\ude00")", R"("\ud83d\ud83d")", R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83d\u0041")",
          R"("\ude00\ud83d")", R"("\u12")", R"("\u12g4")", R"("\x41")", R"("\")", R"("\ud83d\u")", R"({"\udc00":1})"}) {
        check_text(text, false);
    }
}

TEST(Hostile, ATextThatEndsTooEarlyIsRefusedAtEveryByte) {
    const std::string review =
        R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","operation":"CREATE","object":)" +
        std::string(good) + R"(,"numbers":[-1.5e3,true,null,"é😀\u00e4"]}})";
    json::Document document;
    ASSERT_TRUE(document.parse(review, {}));
    for (std::size_t n = 0; n < review.size(); ++n) {
        // Its own memory, so that the address sanitizer sees a read behind the end.
        const std::string cut = review.substr(0, n);
        EXPECT_FALSE(document.parse(cut, {})) << n;
        EXPECT_FALSE(document.root().exists());
        const auto uid = json::find_string(cut, {"request", "uid"});
        EXPECT_EQ(uid.has_value(), n >= review.find("u-1") + 4) << n;
        if (n % 11 == 0) {
            EXPECT_FALSE(document.parse(ballast() + cut, {})) << n;
        }
    }
}

TEST(Hostile, TheUidIsFoundBehindAByteOrderMarkAndNeverAsHalfACharacter) {
    EXPECT_EQ(json::find_string("\xEF\xBB\xBF{\"uid\":\"u\"}", {"uid"}), "u");
    EXPECT_EQ(json::find_string(R"({"uid":"\ude00"})", {"uid"}), std::nullopt);
}

TEST(Hostile, WhatStandsAroundADocument) {
    check_text("", false);
    check_text(" \n", false);
    check_text(" \t\r\n[1] \t\r\n", true);
    check_text("[1],", false);
    check_text("[1][2]", false);
    check_text("[1]//", false);
    check_text("/**/[1]", false);
    check_text("[1,]", false);
    check_text("{\"a\":1,}", false);
    check_text("{a:1}", false);
    check_text("{'a':1}", false);
    check_text("{\"a\" 1}", false);
    check_text("{1:1}", false);
    check_text("[1 2]", false);
    check_text("]", false);
    check_text("[}", false);
    check_text("tru", false);
    check_text("truex", false);
    check_text("nulL", false);
    check_text("\f[1]", false);
    check_text(std::string("[1]\0", 4), false);
    check_text(std::string("[1]\0[2]", 7), false);
    check_text(std::string("\0[1]", 4), false);
}

}  // namespace
}  // namespace ossa
