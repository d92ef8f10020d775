#include "schema/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ossa::schema {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json::Document parse(std::string_view text) {
    auto document = json::Document::from(text, {.bytes_max = 16U << 20, .depth_max = 20'000, .values_max = 1U << 22});
    EXPECT_TRUE(document) << text.substr(0, 200) << ": " << document.error().message();
    return std::move(*document);
}

Plan compile(std::string_view schema, const Plan::Options& options = {}) {
    const json::Document document = parse(schema);
    auto plan = Plan::compile(document.root(), options);
    EXPECT_TRUE(plan) << schema.substr(0, 200) << ": " << plan.error().message();
    return std::move(*plan);
}

RunResult run(std::string_view schema, std::string_view instance, const RunOptions& options = {}) {
    RunResult result;
    const json::Document document = parse(instance);
    const Plan plan = compile(schema);
    plan.run(document.root(), options, result);
    return result;
}

// Each error as "pointer keyword", with the name behind it when a member is missing; in the order in which they are
// told.
std::vector<std::string> errors(const RunResult& result) {
    std::vector<std::string> out;
    for (const kube::Finding& finding : result.errors) {
        std::string line = finding.pointer + " " + finding.rule.substr(sizeof("schema/") - 1);
        out.push_back(finding.member.empty() ? line : line + " " + finding.member);
    }
    return out;
}

void check(std::string_view schema, std::string_view instance, const std::vector<std::string>& expected) {
    EXPECT_EQ(errors(run(schema, instance)), expected) << schema << " on " << instance;
}

void check_good(std::string_view schema, const std::vector<std::string_view>& instances) {
    for (const std::string_view instance : instances) {
        check(schema, instance, {});
    }
}

// One error of this keyword at the root.
void check_bad(std::string_view schema, std::string_view keyword, const std::vector<std::string_view>& instances) {
    for (const std::string_view instance : instances) {
        check(schema, instance, {" " + std::string(keyword)});
    }
}

void check_refused(std::string_view schema, std::string_view words, const Plan::Options& options = {}) {
    const json::Document document = parse(schema);
    const auto plan = Plan::compile(document.root(), options);
    ASSERT_FALSE(plan) << schema.substr(0, 200);
    EXPECT_THAT(plan.error().message(), HasSubstr(words)) << schema.substr(0, 200);
}

kube::Finding only_error(std::string_view schema, std::string_view instance) {
    const RunResult result = run(schema, instance);
    EXPECT_EQ(result.errors.size(), 1U) << schema << " on " << instance;
    return result.errors.empty() ? kube::Finding{} : result.errors.front();
}

// -------------------------------------------------------------------------------------------- keywords for any value

TEST(Plan, TypeNamesOneOrSeveralTypes) {
    check_good(R"({"type":"null"})", {"null"});
    check_bad(R"({"type":"null"})", "type", {"0", "false", "\"\"", "[]", "{}"});
    check_good(R"({"type":"boolean"})", {"true", "false"});
    check_bad(R"({"type":"boolean"})", "type", {"0", "null", "\"true\""});
    check_good(R"({"type":"string"})", {"\"\"", "\"1\""});
    check_bad(R"({"type":"string"})", "type", {"1", "null", "[\"a\"]"});
    check_good(R"({"type":"array"})", {"[]", "[1]"});
    check_bad(R"({"type":"array"})", "type", {"{}", "\"[]\""});
    check_good(R"({"type":"object"})", {"{}", R"({"a":1})"});
    check_bad(R"({"type":"object"})", "type", {"[]", "null"});
    check_good(R"({"type":["integer","string"]})", {"1", "\"1\""});
    check_bad(R"({"type":["integer","string"]})", "type", {"1.5", "null"});
}

TEST(Plan, AnIntegerIsAWholeNumberHoweverItIsSpelled) {
    check_good(R"({"type":"integer"})",
               {"0", "-0", "-0.0", "30.0", "3e1", "300e-1", "1e300", "9223372036854775808", "18446744073709551616",
                "123456789012345678901234567890", "-9223372036854775809"});
    check_bad(R"({"type":"integer"})", "type", {"0.5", "1e-7", "30.000001", "\"30\""});
    check_good(R"({"type":"number"})", {"0", "0.5", "3e1", "18446744073709551616"});
}

TEST(Plan, EnumComparesValuesAndNotSpellings) {
    constexpr std::string_view schema = R"({"enum":[1,"a",null,[1,2],{"x":1,"y":2.0},18446744073709551615]})";
    check_good(schema, {"1", "1.0", "1e0", "\"a\"", "null", "[1.0,2]", R"({"y":2,"x":1})", "18446744073709551615"});
    check_bad(schema, "enum", {"2", "\"A\"", "\"1\"", "false", "[2,1]", R"({"x":1})", "true", "[1]", "[1,2,3]"});
}

TEST(Plan, ConstIsAnEnumOfOne) {
    check_good(R"({"const":{"a":[1]}})", {R"({"a":[1.0]})"});
    check_bad(R"({"const":{"a":[1]}})", "const", {R"({"a":[2]})", R"({"a":[1],"b":1})", "1"});
    check_good(R"({"const":null})", {"null"});
    check_bad(R"({"const":null})", "const", {"0", "false"});
    check_bad(R"({"const":0})", "const", {"false", "\"0\""});
}

TEST(Plan, BooleanSchemasAcceptOrRefuseEverything) {
    check_good("true", {"1", "null", "{}"});
    check_bad("false", "false", {"1", "null", "{}"});
    check(R"({"properties":{"a":false,"b":true}})", R"({"a":1,"b":1})", {"/a false"});
    check(R"({"items":false})", "[]", {});
    check(R"({"items":false})", "[1,2]", {"/0 false", "/1 false"});
    check_good("{}", {"1", "[]"});
}

// --------------------------------------------------------------------------------------------------- objects

TEST(Plan, EveryMissingMemberIsToldAtItsObject) {
    check(R"({"required":["a","b"],"properties":{"b":{}}})", R"({"c":1})", {" required b", " required a"});
    check(R"({"required":["a"]})", R"({"a":null})", {});
    check_good(R"({"required":["a"]})", {"[]", "1", "null"});
    check(R"({"properties":{"o":{"required":["x"]}}})", R"({"o":{}})", {"/o required x"});
}

TEST(Plan, MoreThanSixtyFourMembersMayBeRequired) {
    std::string names;
    std::string full = "{";
    for (int i = 0; i < 70; ++i) {
        names += (i == 0 ? "\"m" : ",\"m") + std::to_string(i) + "\"";
        full += (i == 0 ? "\"m" : ",\"m") + std::to_string(i) + "\":1";
    }
    const std::string schema = R"({"required":[)" + names + "]}";
    EXPECT_EQ(run(schema, "{}").errors.size(), 70U);
    EXPECT_THAT(errors(run(schema, full + "}")), IsEmpty());
    EXPECT_THAT(errors(run(schema, full.substr(0, full.rfind(',')) + "}")), ElementsAre(" required m69"));
    EXPECT_THAT(errors(run(schema, "{" + full.substr(full.find(',') + 1) + "}")), ElementsAre(" required m0"));
}

TEST(Plan, PropertiesJudgeMembersByNameOnly) {
    constexpr std::string_view schema =
        R"({"properties":{"a":{"type":"string"},"a/b~c":{"type":"string"},"":{"type":"null"}}})";
    check(schema, R"({"a":1,"a/b~c":1,"":1,"other":1})", {"/a type", "/a~1b~0c type", "/ type"});
    check_good(schema, {"[1]", "3", R"({"A":1})", R"({"ab":1})"});
}

TEST(Plan, APropertyMayBeCalledLikeAKeyword) {
    check(R"({"properties":{"pattern":{"type":"string"},"$ref":{"type":"string"},"required":{"type":"array"}}})",
          R"({"pattern":1,"$ref":2,"required":3})", {"/pattern type", "/$ref type", "/required type"});
}

TEST(Plan, AdditionalPropertiesJudgeWhatNeitherNamesNorPatternsMatch) {
    constexpr std::string_view schema =
        R"({"properties":{"a":{}},"patternProperties":{"^x":{"type":"integer"},"y$":{"type":"number"}},"additionalProperties":false})";
    check(schema, R"({"a":"any","x1":1,"2y":1.5})", {});
    check(schema, R"({"x1":"no"})", {"/x1 type"});
    check(schema, R"({"xy":1.5})", {"/xy type"});  // a number for y$, no integer for ^x
    check(schema, R"({"b":1,"c":2})", {"/b false", "/c false"});
    check(R"({"additionalProperties":{"type":"string"}})", R"({"a":"s","b":1})", {"/b type"});
    check(R"({"properties":{"x1":{"type":"string"}},"patternProperties":{"^x":{"maxLength":1}}})", R"({"x1":"long"})",
          {"/x1 maxLength"});
    check(R"({"required":["a"],"additionalProperties":false})", R"({"a":1})", {"/a false"});
    check(R"({"properties":{"a":{}},"additionalProperties":true})", R"({"b":1})", {});
}

TEST(Plan, PropertyNamesJudgesTheNames) {
    check(R"({"propertyNames":{"maxLength":2,"pattern":"^[a-z]+$"}})", R"({"ab":1,"abc":1,"A":1})",
          {"/abc maxLength", "/A pattern"});
    check(R"({"propertyNames":false})", "{}", {});
    check(R"({"propertyNames":false})", R"({"a":1})", {"/a false"});
}

TEST(Plan, MinAndMaxPropertiesCountMembers) {
    check_good(R"({"minProperties":1,"maxProperties":2})", {R"({"a":1})", R"({"a":1,"b":1})", "[]"});
    check_bad(R"({"minProperties":1})", "minProperties", {"{}"});
    check_bad(R"({"maxProperties":2})", "maxProperties", {R"({"a":1,"b":1,"c":1})"});
}

TEST(Plan, DependenciesAskForMembersOrASchema) {
    constexpr std::string_view schema =
        R"({"dependencies":{"a":["b","c"],"d":{"properties":{"e":{"type":"string"}}}}})";
    check(schema, R"({"b":1})", {});
    check(schema, R"({"a":1,"b":1,"c":1})", {});
    check(schema, R"({"a":1,"c":1})", {" dependencies"});
    check(schema, R"({"d":1,"e":1})", {"/e type"});
    check(schema, R"({"e":1})", {});
}

// ---------------------------------------------------------------------------------------------------- arrays

TEST(Plan, ItemsJudgeEveryElement) {
    check(R"({"items":{"type":"integer"}})", R"([1,"a",2.0,null])", {"/1 type", "/3 type"});
    check_good(R"({"items":{"type":"integer"}})", {"[]", R"({"0":"a"})"});
}

TEST(Plan, ATupleJudgesByPlaceAndAdditionalItemsTheRest) {
    constexpr std::string_view schema =
        R"({"items":[{"type":"integer"},{"type":"string"}],"additionalItems":{"type":"null"}})";
    check(schema, R"([1,"a",null,null])", {});
    check(schema, R"(["a",1,2])", {"/0 type", "/1 type", "/2 type"});
    check(schema, "[1]", {});
    check(R"({"items":[{"type":"integer"}]})", R"([1,"anything"])", {});
    check(R"({"items":[{"type":"integer"}],"additionalItems":false})", R"([1,2])", {"/1 false"});
    check(R"({"items":[],"additionalItems":false})", "[1]", {"/0 false"});
    check(R"({"additionalItems":false})", "[1,2]", {});  // means nothing without a tuple
    check(R"({"items":{},"additionalItems":false})", "[1,2]", {});
}

TEST(Plan, MinAndMaxItemsCountElements) {
    check_good(R"({"minItems":1,"maxItems":2})", {"[1]", "[1,2]", "{}", "\"\""});
    check_bad(R"({"minItems":1})", "minItems", {"[]"});
    check_bad(R"({"maxItems":2.0})", "maxItems", {"[1,2,3]"});
}

TEST(Plan, ContainsWantsOneMatchingElement) {
    check_good(R"({"contains":{"type":"string"}})", {"[1,\"a\"]", "{}"});
    check_bad(R"({"contains":{"type":"string"}})", "contains", {"[]", "[1,2]"});
}

TEST(Plan, UniqueItemsComparesValues) {
    constexpr std::string_view schema = R"({"uniqueItems":true})";
    check_good(schema, {"[]", "[1]", "[1,2]", "[1,true]", "[0,false]", R"(["1",1])", R"([{"a":1},{"a":2}])",
                        "[[1],[2]]", "[[1,2],[12]]", R"([null,"null"])", R"([{"a":1},"{\"a\":1,}"])",
                        "[9007199254740992,9007199254740993]"});
    check_bad(schema, "uniqueItems",
              {"[1,1]", "[1,1.0]", "[10,1e1]", "[0,-0.0]", R"([{"a":1,"b":2},{"b":2.0,"a":1}])", R"(["a","b","a"])",
               "[[1],[1.0]]", "[null,null]", "[1.5,15e-1]", "[9223372036854775808,9223372036854775808.0]"});
    check(R"({"uniqueItems":false})", "[1,1]", {});
}

// ---------------------------------------------------------------------------------------- numbers and strings

TEST(Plan, BoundsIncludeOrExclude) {
    check_good(R"({"minimum":1,"maximum":3})", {"1", "3.0", "2.5", "\"0\""});
    check_bad(R"({"minimum":1})", "minimum", {"0", "0.999", "-1e300"});
    check_bad(R"({"maximum":3})", "maximum", {"3.001", "18446744073709551616"});
    check_good(R"({"exclusiveMinimum":1,"exclusiveMaximum":3})", {"1.001", "2.999"});
    check_bad(R"({"exclusiveMinimum":1})", "exclusiveMinimum", {"1", "1.0", "0"});
    check_bad(R"({"exclusiveMaximum":3})", "exclusiveMaximum", {"3", "4"});
}

TEST(Plan, MultipleOfDividesWithoutRest) {
    check_good(R"({"multipleOf":2})", {"0", "4", "-6", "1e10", "\"3\""});
    check_bad(R"({"multipleOf":2})", "multipleOf", {"3", "0.5"});
    check_good(R"({"multipleOf":0.5})", {"1.5", "2"});
}

TEST(Plan, LengthsCountCodePoints) {
    check_good(R"({"minLength":2,"maxLength":3})",
               {"\"ab\"", "\"äöü\"", "\"😀😀😀\"", R"("\ud83d\ude00\ud83d\ude00")", "5"});
    check_bad(R"({"minLength":2})", "minLength", {"\"\"", "\"😀\"", "\"ä\""});
    check_bad(R"({"maxLength":3})", "maxLength", {"\"abcd\"", "\"😀😀😀😀\"", R"("a\u0000bc")"});
    check_bad(R"({"minLength":1})", "minLength", {"\"\""});
    check_bad(R"({"maxLength":0})", "maxLength", {"\"a\""});
}

TEST(Plan, PatternsSearchAndAnchorsHoldAtTheEndsOfTheText) {
    check_good(R"({"pattern":"b"})", {"\"abc\"", "1"});
    check_bad(R"({"pattern":"b"})", "pattern", {"\"ac\"", "\"\""});
    check_good(R"({"pattern":"^a$"})", {"\"a\""});
    check_bad(R"({"pattern":"^a$"})", "pattern", {R"("a\n")", R"("a\u0000")", R"("b\na")"});
    check_good(R"({"pattern":"^.$"})", {"\"😀\""});
}

TEST(Plan, FormatUriIsAnAbsoluteUriAndOtherFormatsSayNothing) {
    check_good(R"({"format":"uri"})", {"\"https://example.org/a?b#c\"", "\"urn:a:b\"", "1"});
    check_bad(R"({"format":"uri"})", "format", {"\"\"", "\"/a\"", "\"a b:c\""});
    check_good(R"({"format":"email"})", {"\"no mail\""});
}

// ------------------------------------------------------------------------------------------------- combinators

TEST(Plan, OneOfWantsExactlyOneAndIsOneError) {
    constexpr std::string_view schema =
        R"({"oneOf":[{"type":"object","required":["a","b"]},{"type":"string","format":"uri"},{"type":"string","minLength":20}]})";
    check_good(schema, {R"({"a":1,"b":1})", "\"a:b\"", "\"aaaaaaaaaaaaaaaaaaaaaaaa\""});
    check_bad(schema, "oneOf", {"{}", "1", "\"a\"", "\"http://example.org/longer-than-that\""});
}

TEST(Plan, AnyOfAllOfNotAndIf) {
    check_good(R"({"anyOf":[{"type":"string"},{"minimum":3}]})", {"\"a\"", "3", "null"});
    check_bad(R"({"anyOf":[{"type":"string"},{"minimum":3}]})", "anyOf", {"2"});
    check(R"({"allOf":[{"properties":{"a":{"type":"string"}}},{"required":["b"]}]})", R"({"a":1})",
          {"/a type", " required b"});
    check_good(R"({"not":{"type":"string"}})", {"1"});
    check_bad(R"({"not":{"type":"string"}})", "not", {"\"a\""});
    check_bad(R"({"not":true})", "not", {"1"});
    check_good(R"({"not":false})", {"1"});
    constexpr std::string_view conditional =
        R"({"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}})";
    check_good(conditional, {R"({"a":1,"b":1})", R"({"c":1})"});
    check(conditional, R"({"a":1})", {" required b"});
    check(conditional, R"({"b":1})", {" required c"});
    check_good(R"({"if":{"required":["a"]}})", {"{}", R"({"a":1})"});
    check_good(R"({"then":false,"else":false})", {"1"});
    check(R"({"if":true,"else":false})", "1", {});
}

// ------------------------------------------------------------------------------------------------------- $ref

TEST(Plan, ARefIsItsTargetAndWhatStandsBesideItIsIgnored) {
    constexpr std::string_view schema =
        R"({"definitions":{"a/b":{"type":"string"}},"items":{"$ref":"#/definitions/a~1b","maxLength":1}})";
    check(schema, R"(["long",1])", {"/1 type"});
}

TEST(Plan, ASchemaMayContainItself) {
    constexpr std::string_view tree =
        R"({"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}}}})";
    check(tree, R"({"children":[{"children":[]},{"children":[{"children":1},2]}]})",
          {"/children/1/children/0/children type", "/children/1/children/1 type"});
}

TEST(Plan, RefusesRefsThatLeadNowhere) {
    check_refused(R"({"$ref":"#/definitions/a"})", "points nowhere");
    check_refused(R"({"$ref":"http://example.org/schema"})", "outside the document");
    check_refused(R"({"$ref":"other.json"})", "outside the document");
    check_refused(R"({"$ref":1})", "outside the document");
    check_refused(R"({"definitions":{"name":{}},"$ref":"#name"})", "points nowhere");
}

TEST(Plan, RefusesRefsThatLeadBackToThemselves) {
    check_refused(R"({"$ref":"#"})", "leads back");
    check_refused(
        R"({"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}},"items":{"$ref":"#/definitions/a"}})",
        "leads back");
    for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
        check_refused(R"({")" + std::string(keyword) + R"(":[{"type":"string"},{"$ref":"#"}]})", "leads back");
    }
    for (const char* keyword : {"not", "if"}) {
        check_refused(R"({")" + std::string(keyword) + R"(":{"$ref":"#"}})", "leads back");
    }
    check_refused(R"({"if":true,"then":{"$ref":"#"}})", "leads back");
    check_refused(R"({"dependencies":{"a":{"$ref":"#"}}})", "leads back");
}

// ---------------------------------------------------------------------------------------------------- compiling

TEST(Plan, RefusesKeywordsItDoesNotKnowUnlessTold) {
    check_refused(R"({"properties":{"a":{"type":"string","maxlength":3}}})", "/properties/a/maxlength");
    check_refused(R"({"unevaluatedProperties":false})", "unknown keyword");
    const Plan plan = compile(R"({"maxlength":3,"type":"string"})", {.unknown = UnknownKeyword::ignore});
    RunResult result;
    plan.run(parse("\"long\"").root(), {}, result);
    EXPECT_THAT(result.errors, IsEmpty());
}

TEST(Plan, KnowsTheAnnotations) {
    check_good(R"({"title":"t","description":"d","$comment":"c","$schema":"s","$id":"i","examples":[1],"readOnly":true,
                   "writeOnly":false,"default":3,"contentMediaType":"a/b","contentEncoding":"base64","definitions":{"unused":3},
                   "x-own":1})",
               {"1", "null"});
}

TEST(Plan, RefusesBrokenKeywords) {
    for (const char* schema : {"1",
                               "null",
                               R"("string")",
                               R"([])",
                               R"({"type":"text"})",
                               R"({"type":[]})",
                               R"({"type":1})",
                               R"({"properties":[]})",
                               R"({"properties":{"a":1}})",
                               R"({"items":1})",
                               R"({"items":[1]})",
                               R"({"minLength":-1})",
                               R"({"minLength":1.5})",
                               R"({"minLength":"1"})",
                               R"({"maxItems":null})",
                               R"({"minimum":"1"})",
                               R"({"multipleOf":0})",
                               R"({"multipleOf":-1})",
                               R"({"enum":[]})",
                               R"({"enum":1})",
                               R"({"pattern":1})",
                               R"({"pattern":"("})",
                               R"x({"pattern":"a(?=b)"})x",
                               R"({"patternProperties":{"(":{}}})",
                               R"({"oneOf":[]})",
                               R"({"anyOf":{}})",
                               R"({"allOf":1})",
                               R"({"not":1})",
                               R"({"required":[1]})",
                               R"({"additionalProperties":1})",
                               R"({"dependencies":{"a":1}})"}) {
        check_refused(schema, "schema at");
    }
}

TEST(Plan, RefusesSchemasThatAreTooLargeOrTooDeep) {
    std::string wide = R"({"properties":{)";
    for (int i = 0; i < 100; ++i) {
        wide += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + "\":{}";
    }
    wide += "}}";
    check_refused(wide, "too many subschemas", {.nodes_max = 100});
    compile(wide, {.nodes_max = 101});

    std::string deep = "true";
    for (int i = 0; i < 200; ++i) {
        deep = R"({"not":)" + deep + "}";
    }
    check_refused(deep, "nested too deeply");
}

TEST(Plan, DoesNotExecutePatternsWhenTold) {
    const Plan plan = compile(
        R"({"properties":{"a":{"pattern":"(?=lookahead"}},"patternProperties":{"(":{"type":"string"}},"additionalProperties":false})",
        {.unknown = UnknownKeyword::ignore, .run_patterns = false});
    RunResult result;
    plan.run(parse(R"({"a":"x","b":1})").root(), {}, result);
    EXPECT_THAT(result.errors, IsEmpty());
}

TEST(Plan, OutlivesTheDocumentItWasCompiledFrom) {
    Plan plan = compile(R"({"properties":{"a":{"enum":["x"],"default":"x"}},"required":["b"]})");
    Plan moved = std::move(plan);
    RunResult result;
    moved.run(parse(R"({"a":"y"})").root(), {}, result);
    EXPECT_THAT(errors(result), ElementsAre("/a enum", " required b"));
    result.clear();
    moved.run(parse("{}").root(), {.base_pointer = "", .collect_fills = true}, result);
    ASSERT_EQ(result.fills.size(), 1U);
    EXPECT_EQ(result.fills[0].value, "\"x\"");
}

// ------------------------------------------------------------------------------------------------------- results

TEST(Plan, ErrorsFollowTheDocumentAndAreTheSameEachTime) {
    constexpr std::string_view schema =
        R"({"required":["z"],"properties":{"a":{"type":"string"},"b":{"items":{"enum":[1]}},"c":{"type":"string","maxLength":1,"pattern":"^b"}}})";
    const std::vector<std::string> expected{"/c maxLength", "/c pattern", "/b/0 enum",
                                            "/b/2 enum",    "/a type",    " required z"};
    check(schema, R"({"c":"aa","b":[2,1,3],"a":1})", expected);
    check(schema, R"({"c":"aa","b":[2,1,3],"a":1})", expected);
}

TEST(Plan, OneValueCanBreakSeveralKeywords) {
    check(R"({"type":"string","enum":["a"],"minimum":3})", "1", {" type", " enum", " minimum"});
}

TEST(Plan, PutsTheBasePointerInFront) {
    const RunResult result = run(R"({"properties":{"a":{"type":"string","default":"b"}}})", "{}",
                                 {.base_pointer = "/spec", .collect_fills = true});
    ASSERT_EQ(result.fills.size(), 1U);
    EXPECT_EQ(result.fills[0].pointer, "/spec/a");
    EXPECT_THAT(errors(run(R"({"type":"string"})", "1", {.base_pointer = "/spec"})), ElementsAre("/spec type"));
}

TEST(Plan, StopsCountingErrorsAtTheLimit) {
    std::string many = "[";
    for (int i = 0; i < 5000; ++i) {
        many += i == 0 ? "1" : ",1";
    }
    many += "]";
    EXPECT_EQ(run(R"({"items":{"type":"string"}})", many, {.errors_max = 7}).errors.size(), 7U);
    EXPECT_EQ(run(R"({"items":{"type":"string"}})", many).errors.size(), 1000U);
}

TEST(Plan, AppendsToTheResult) {
    const Plan plan = compile(R"({"type":"string"})");
    RunResult result;
    plan.run(parse("1").root(), {.base_pointer = "/a"}, result);
    plan.run(parse("1").root(), {.base_pointer = "/b"}, result);
    EXPECT_THAT(errors(result), ElementsAre("/a type", "/b type"));
    result.clear();
    EXPECT_EQ(result.steps, 0U);
    EXPECT_THAT(result.errors, IsEmpty());
}

TEST(Plan, MessagesSayWhatIsWanted) {
    EXPECT_EQ(only_error(R"({"type":"integer"})", "\"3\"").message, "must be an integer, not a string");
    EXPECT_EQ(only_error(R"({"type":"integer"})", "\"3\"").hint, "write it without quotes");
    EXPECT_EQ(only_error(R"({"type":["object","string"]})", "null").message, "must be an object or a string, not null");
    EXPECT_EQ(only_error(R"({"type":"string"})", "1.5").hint, "put it in quotes: \"1.5\"");
    EXPECT_EQ(only_error(R"({"enum":["linear","exponential"]})", "\"exponental\"").message,
              R"(supported values: "linear", "exponential")");
    EXPECT_THAT(only_error(R"({"enum":["linear","exponential"]})", "\"exponental\"").hint, HasSubstr("exponential"));
    EXPECT_EQ(only_error(R"({"minLength":1})", "\"\"").message, "must not be empty");
    EXPECT_EQ(only_error(R"({"maxLength":3})", "\"äöüß\"").message, "must have at most 3 characters, has 4");
    EXPECT_EQ(only_error(R"({"minItems":1})", "[]").message, "must have at least 1 item");
    EXPECT_EQ(only_error(R"({"maximum":2.5})", "3").message, "must be at most 2.5");
    EXPECT_EQ(only_error(R"({"pattern":"^a"})", "\"b\"").message, "must match the pattern ^a");
    EXPECT_EQ(only_error(R"({"pattern":"^a","x-ossa-says":"a word with a in front"})", "\"b\"").message,
              "must be a word with a in front");
    EXPECT_EQ(only_error(R"({"oneOf":[{"type":"object"},{"type":"string","format":"uri"}]})", "1").message,
              "must be an object or an absolute URI");
    const kube::Finding missing = only_error(R"({"properties":{"a":{"required":["b"]}}})", R"({"a":{}})");
    EXPECT_EQ(missing.cause, kube::CauseType::required);
    EXPECT_EQ(kube::to_line(missing).substr(0, 4), "a.b:");
}

TEST(Plan, MessagesStayShortForLongValues) {
    const kube::Finding finding = only_error(R"({"maxLength":3})", "\"" + std::string(1'000'000, 'a') + "\"");
    EXPECT_LT(finding.found.size() + finding.message.size(), 300U);
}

// --------------------------------------------------------------------------------------------- fills and unknown
// members

std::vector<std::string> fills(std::string_view schema, std::string_view instance) {
    // A fill's value lives in its plan.
    const Plan plan = compile(schema);
    const json::Document document = parse(instance);
    RunResult result;
    plan.run(document.root(), {.base_pointer = "", .collect_fills = true}, result);
    std::vector<std::string> out;
    for (const Fill& fill : result.fills) {
        out.push_back(fill.pointer + "=" + std::string(fill.value));
    }
    return out;
}

TEST(Plan, FillsDefaultsOnlyWhereTheObjectExists) {
    constexpr std::string_view schema =
        R"({"properties":{"a":{"default":{"x":[1,2.5]}},"o":{"properties":{"d/e":{"default":"v"}}},"l":{"items":{"properties":{"n":{"default":3}}}}}})";
    EXPECT_THAT(fills(schema, "{}"), ElementsAre(R"(/a={"x":[1,2.5]})"));
    EXPECT_THAT(fills(schema, R"({"a":null,"o":{},"l":[{},{"n":0},{}]})"),
                ElementsAre("/o/d~1e=\"v\"", "/l/0/n=3", "/l/2/n=3"));
    EXPECT_THAT(fills(schema, "[]"), IsEmpty());
    EXPECT_THAT(fills(schema, R"({"a":1,"o":[],"l":{}})"), IsEmpty());
}

TEST(Plan, DoesNotFillFromBranchesThatAreOnlyTried) {
    EXPECT_THAT(fills(R"({"oneOf":[{"properties":{"a":{"default":1}}},{"type":"string"}]})", "{}"), IsEmpty());
}

std::vector<std::string> unknown(std::string_view schema, std::string_view instance) {
    std::vector<std::string> out;
    for (const UnknownMember& member :
         run(schema, instance, {.base_pointer = "/spec", .collect_unknown = true}).unknown) {
        out.push_back(member.pointer + " -> " + member.nearest);
    }
    return out;
}

TEST(Plan, TellsMembersThatNoSchemaListsAndWhatWasProbablyMeant) {
    constexpr std::string_view schema =
        R"({"properties":{"timeout_seconds":{},"policy":{"properties":{"encryption":{}}},"free":{"additionalProperties":true,"properties":{"a":{}}},"any":{}}})";
    EXPECT_THAT(
        unknown(schema, R"({"timeout_second":1,"encryption":true,"zzz":0,"x-own":1,"free":{"b":1},"any":{"b":1}})"),
        ElementsAre("/spec/timeout_second -> /spec/timeout_seconds", "/spec/encryption -> /spec/policy/encryption",
                    "/spec/zzz -> "));
    EXPECT_THAT(unknown(schema, R"({"timeout_seconds":1})"), IsEmpty());
}

TEST(Plan, AMemberThatIsOnlyRequiredIsNotUnknown) {
    EXPECT_THAT(unknown(R"({"required":["a"],"properties":{"b":{}}})", R"({"a":1})"), IsEmpty());
}

// -------------------------------------------------------------------------------------------------- budgets

TEST(Plan, StopsAtTheStepBudgetWithoutAVerdict) {
    // Each level asks for the next one twice: 2^40 visits without a budget.
    std::string schema = R"({"definitions":{"l40":{"type":"string"})";
    for (int i = 39; i >= 0; --i) {
        const std::string next = R"({"$ref":"#/definitions/l)" + std::to_string(i + 1) + "\"}";
        schema += ",\"l" + std::to_string(i) + R"(":{"anyOf":[)" + next + "," + next + "]}";
    }
    schema += R"(},"$ref":"#/definitions/l0"})";
    const RunResult result = run(schema, "1", {.steps_max = 10'000});
    EXPECT_TRUE(result.out_of_steps);
    EXPECT_LE(result.steps, 10'001U + 50U);
}

TEST(Plan, CountsUniqueItemsAgainstTheBudget) {
    std::string many = "[0";
    for (int i = 1; i < 1000; ++i) {
        many += "," + std::to_string(i);
    }
    EXPECT_TRUE(run(R"({"uniqueItems":true})", many + "]", {.steps_max = 100}).out_of_steps);
    EXPECT_FALSE(run(R"({"uniqueItems":true})", many + "]", {.steps_max = 10'000}).out_of_steps);
}

TEST(Plan, GivesUpInsteadOfOverflowingTheStack) {
    const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
    const RunResult result = run(R"({"items":{"$ref":"#"}})", deep);
    EXPECT_TRUE(result.out_of_steps);
    const std::string fine = std::string(250, '[') + std::string(250, ']');
    EXPECT_FALSE(run(R"({"items":{"$ref":"#"}})", fine).out_of_steps);
}

}  // namespace
}  // namespace ossa::schema
