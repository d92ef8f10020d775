#include "base/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ossa::json {
namespace {

using ::testing::HasSubstr;

std::string padded_with(std::string text, std::size_t spaces) {
    return std::string(spaces, ' ') + std::move(text);
}

// Both readers: simdjson takes small texts, RapidJSON the large ones.
constexpr std::size_t beyond_simdjson = std::size_t{300} << 10;

void check_refused(const std::string& text, const std::string& why, const Limits& limits = {}) {
    for (const std::size_t spaces : {std::size_t{0}, beyond_simdjson}) {
        const auto document = Document::from(padded_with(text, spaces), limits);
        ASSERT_FALSE(document) << text.substr(0, 100) << " with " << spaces << " spaces";
        EXPECT_THAT(document.error().message(), HasSubstr(why)) << text.substr(0, 100);
    }
}

void check_reads(const std::string& text, const std::string& printed) {
    for (const std::size_t spaces : {std::size_t{0}, beyond_simdjson}) {
        const auto document = Document::from(padded_with(text, spaces));
        ASSERT_TRUE(document) << text << ": " << document.error().message();
        EXPECT_EQ(to_text(document->root()), printed);
    }
}

TEST(Json, ReadsEveryKindOfValue) {
    check_reads(R"({"a":[1,-2,true,false,null,"x",{}],"b":{"c":[]}})",
                R"({"a":[1,-2,true,false,null,"x",{}],"b":{"c":[]}})");
    check_reads("  \"alone\" ", "\"alone\"");
    check_reads("[]", "[]");
}

TEST(Json, NumbersKeepTheirValueWhateverTheirSpelling) {
    check_reads("[30.0, 3e1, -0, 0.1, 9007199254740993, -9223372036854775808, 18446744073709551615]",
                "[30,30,0,0.1,9007199254740993,-9223372036854775808,18446744073709551615]");
    check_reads("[0.00000000000000000000000000, -0.000000000000000000000000000, 0e40, -0E-400, 0.0e-999999]",
                "[0,-0,0,-0,0]");
    check_reads("[0e308, -0E+308, 0e400, 0.0e309, 1]", "[0,-0,0,0,1]");
    check_reads("[18446744073709551616, 1e300]", "[18446744073709551616,1e+300]");
    const auto document = Document::from("[30.0, 3e1, 18446744073709551616, 1e300, 0.5, -5]").value();
    std::vector<bool> whole;
    for (const Value value : document.root().elements()) {
        whole.push_back(value.is_integer());
    }
    EXPECT_EQ(whole, (std::vector<bool>{true, true, true, true, false, true}));
}

TEST(Json, RefusesNumbersBeyondDouble) {
    check_refused("[1E400]", "too big");
}

TEST(Json, R023_RefusesARepeatedNameAtAnyDepthAndInObjectsOfAnySize) {
    check_refused(R"({"a":1,"a":2})", "duplicate member name \"a\"");
    check_refused(R"({"x":[{"y":{"k":1,"z":2,"k":3}}]})", "in /x/0/y/");
    std::string many = "{";
    for (int i = 0; i < 100; ++i) {
        many += "\"member_" + std::to_string(i) + "\":1,";
    }
    check_refused(many + "\"member_7\":2}", "duplicate member name \"member_7\"");
    check_refused(R"({"a":1,"\u0061":2})", "duplicate member name \"a\"");
}

TEST(Json, DifferentNamesWithEqualEndsAreNotDuplicates) {
    std::string text = "{";
    for (int i = 0; i < 300; ++i) {
        text += "\"prefix--" + std::to_string(1000 + i) + "--suffix\":1,";
    }
    text += "\"\":0}";
    EXPECT_TRUE(Document::from(text));
}

TEST(Json, R016_NestingIsRefusedBeyondTheLimitAndNeverOverflows) {
    const auto nested = [](std::size_t n, char open, char close) {
        return std::string(n, open) + (open == '{' ? "" : "") + std::string(n, close);
    };
    EXPECT_TRUE(Document::from(nested(256, '[', ']')));
    for (const std::size_t n : {std::size_t{257}, std::size_t{1000}, std::size_t{10'000}, std::size_t{200'000}}) {
        check_refused(nested(n, '[', ']'), "nested too deeply");
    }
    std::string objects;
    for (int i = 0; i < 100'000; ++i) {
        objects += R"({"a":)";
    }
    check_refused(objects, "nested too deeply");
    check_refused(std::string(std::size_t{7} << 20, '['), "nested too deeply", {.bytes_max = std::size_t{8} << 20});
}

TEST(Json, CountsValuesAndNames) {
    EXPECT_TRUE(Document::from(R"({"a":[1,2,3]})", {.values_max = 6}));
    check_refused(R"({"a":[1,2,3]})", "too many values", {.values_max = 5});
}

TEST(Json, RefusesTextsBeyondTheByteLimitUnread) {
    const auto document = Document::from("[1,2,3]", {.bytes_max = 6});
    ASSERT_FALSE(document);
    EXPECT_EQ(document.error().code(), ErrorCode::too_large);
}

TEST(Json, SaysWhereATextIsBroken) {
    check_refused("", "empty");
    check_refused("{", "at byte");
    check_refused(R"({"a":1,})", "at byte");
    check_refused("[1] x", "at byte");
    check_refused("{\"a\":\"\xFF\"}", "at byte");
    check_refused(R"(["\ud800"])", "at byte");
    check_refused(std::string("[1]\0x", 5), "at byte 3");
}

void check_position(const std::string& text, const std::string& where) {
    const auto document = Document::from(text);
    ASSERT_FALSE(document);
    EXPECT_THAT(document.error().message(), HasSubstr(where));
}
TEST(Json, CountsTheByteOrderMarkInPositions) {
    check_position("\xEF\xBB\xBF[1,]", "at byte 6");
}

TEST(Json, SkipsAByteOrderMark) {
    EXPECT_EQ(to_text(Document::from("\xEF\xBB\xBF[1]").value().root()), "[1]");
}

TEST(Json, FindsByPointerNameAndIndex) {
    const auto document = Document::from(R"({"a/b":{"m~n":[10,{"x":"y"}]}})").value();
    EXPECT_EQ(document.root().pointer("/a~1b/m~0n/1/x").as_string(), "y");
    EXPECT_EQ(document.root().at("a/b").at("m~n").at(std::size_t{0}).as_int64(), 10);
    EXPECT_FALSE(document.root().pointer("/a~1b/m~0n/2").exists());
    EXPECT_FALSE(document.root().at("none").at("deeper").exists());
    EXPECT_EQ(document.root().at("a/b").at("m~n").size(), 2U);
}

TEST(Json, EqualLooksThroughSpellingAndOrder) {
    const auto pair = Document::from(R"([{"a":1,"b":[2.0]},{"b":[2],"a":1.0},{"a":1,"b":[3]}])").value();
    EXPECT_TRUE(equal(pair.root().at(std::size_t{0}), pair.root().at(std::size_t{1})));
    EXPECT_FALSE(equal(pair.root().at(std::size_t{0}), pair.root().at(std::size_t{2})));
}

TEST(Json, MergePatchReplacesAddsAndRemoves) {
    const auto target = Document::from(R"({"a":{"x":1,"y":2},"b":3})").value();
    const auto patch = Document::from(R"({"a":{"y":null,"z":4},"c":{"n":null,"m":1}})").value();
    EXPECT_EQ(merge_patch(target.root(), patch.root()), R"({"a":{"x":1,"z":4},"b":3,"c":{"m":1}})");
}

TEST(Json, EscapesWhatWouldBreakOutOfAString) {
    std::string out;
    append_quoted(out, std::string_view("a\"b\\c\n\x01\0", 8));
    EXPECT_EQ(out, R"("a\"b\\c\n\u0001\u0000")");
}

TEST(Json, QuotesEveryByteAtEveryPlace) {
    for (int byte = 1; byte < 0x80; ++byte) {
        for (std::size_t place = 0; place < 20; ++place) {
            std::string text(20, 'x');
            text[place] = static_cast<char>(byte);
            std::string quoted;
            append_quoted(quoted, text);
            const auto read = Document::from(quoted);
            ASSERT_TRUE(read) << quoted << ": " << read.error().message();
            EXPECT_EQ(read->root().string_or(""), text);
            EXPECT_EQ(quoted.size() > text.size() + 2, byte < 0x20 || byte == '"' || byte == '\\') << quoted;
        }
    }
}

TEST(Json, WritesPointerTokens) {
    for (const auto& [token, written] :
         {std::pair{"", ""}, {"plain", "plain"}, {"~", "~0"}, {"/", "~1"}, {"a/b~c", "a~1b~0c"}, {"//~", "~1~1~0"}}) {
        std::string out = "/";
        append_pointer_token(out, token);
        EXPECT_EQ(out, std::string("/") + written);
    }
}

TEST(Json, ExcerptsAreShortAndEndAtACharacter) {
    std::string text = "\"";
    for (int i = 0; i < 100; ++i) {
        text += "ä";
    }
    const auto document = Document::from(text + "\"").value();
    const std::string shown = excerpt(document.root(), 20);
    EXPECT_LE(shown.size(), 23U);
    EXPECT_THAT(shown, HasSubstr("ä…"));
}

TEST(Json, FindStringReadsNoFurtherThanItMust) {
    EXPECT_EQ(find_string(R"({"kind":"x","request":{"uid":"u-1","object":{"broken)", {"request", "uid"}), "u-1");
    EXPECT_EQ(find_string(R"({"request":{"object":{"uid":"inner"},"uid":"u-2"}})", {"request", "uid"}), "u-2");
    EXPECT_EQ(find_string(R"({"uid":"outer","request":{"a":1}})", {"request", "uid"}), std::nullopt);
    EXPECT_EQ(find_string(R"({"request":{"uid":5}})", {"request", "uid"}), std::nullopt);
    EXPECT_EQ(find_string(R"({"request":null})", {"request", "uid"}), std::nullopt);
    EXPECT_EQ(find_string(R"([{"request":{"uid":"in a list"}}])", {"request", "uid"}), std::nullopt);
    EXPECT_EQ(find_string(std::string(1 << 20, '['), {"request", "uid"}), std::nullopt);
}

TEST(Json, ADocumentCanBeReused) {
    Document document;
    ASSERT_TRUE(document.parse("[1]", {}));
    ASSERT_FALSE(document.parse("[", {}));
    EXPECT_FALSE(document.root().exists());
    ASSERT_TRUE(document.parse("{\"a\":2}", {}));
    EXPECT_EQ(document.root().at("a").as_int64(), 2);
}

TEST(Builder, MakesTheDocumentThatTheEventsTell) {
    Builder builder;
    builder.begin_object();
    builder.name("list");
    builder.begin_array();
    builder.integer(-1);
    builder.unsigned_integer(18446744073709551615ULL);
    builder.number(0.5);
    builder.null();
    builder.boolean(true);
    builder.string("s");
    builder.end_array();
    builder.end_object();
    const auto document = builder.finish({});
    ASSERT_TRUE(document) << document.error().message();
    EXPECT_EQ(to_text(document->root()), R"({"list":[-1,18446744073709551615,0.5,null,true,"s"]})");
    EXPECT_EQ(document->root().at("list").size(), 6U);
}

TEST(Builder, KeepsTheSameLimitsAsTheParser) {
    Builder builder;
    builder.begin_object();
    builder.name("a");
    builder.null();
    builder.name("a");
    builder.null();
    builder.end_object();
    const auto document = builder.finish({});
    ASSERT_FALSE(document);
    EXPECT_THAT(document.error().message(), HasSubstr("duplicate member name"));
}

}  // namespace
}  // namespace ossa::json
