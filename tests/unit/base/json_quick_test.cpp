#include "base/json_quick.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ossa::json {
namespace {

// A text with bytes of the caller's choice behind it, which the reader may read and must not take for the text.
struct Padded {
    std::string all;
    std::string_view text;
    Padded(std::string_view text_in, char filler)
        : all(std::string(text_in) + std::string(padding_bytes, filler)),
          text(std::string_view{all}.substr(0, text_in.size())) {}
};

// By RapidJSON, which takes the large texts.
Result<Document> by_the_other_reader(std::string_view text) {
    return Document::from(std::string(std::size_t{300} << 10, ' ').append(text));
}

void check_takes(std::string_view text) {
    QuickReader reader;
    const Padded padded(text, ' ');
    ASSERT_TRUE(reader.read(padded.text, {})) << text;
    const Value root{reader.tape(), reader.strings(), 1};
    const auto other = by_the_other_reader(text);
    ASSERT_TRUE(other) << text << ": " << other.error().message();
    EXPECT_EQ(to_text(root), to_text(other->root()));
    EXPECT_EQ(reader.deepest(), other->depth()) << text;
}

bool is_taken(std::string_view text, const Limits& limits = {}) {
    QuickReader reader;
    return reader.read(Padded(text, ' ').text, limits);
}

const std::vector<std::string> ordinary{
    R"({"kind":"AdmissionReview","request":{"uid":"1","dryRun":false,"object":{"spec":{"a":[1,2,{"b":null}]}}}})",
    R"({ "spaced" : [ 1 , 2.5 , -3e2 , true ] , "empty" : { } , "none" : [ ] , "" : "" })",
    "\n[\t{\"a\":1}\r\n,{\"a\":2} ]\n",
    R"({"escaped":"a\"b\\c\/d\n\u00e4\ud83d\ude00","a\tb":1,"":{"\u0061":"","b":"\\"}})",
    R"({"long name of more than sixteen bytes":"and a value that is longer than one block of sixteen bytes"})",
    R"([0,-0,-1,123456789012345678,-123456789012345678,0.1,1e308,1E-5,1e+2])",
    R"([[],{},[[]],{"a":{}}])",
    R"({"min_version":1,"max_version":2,"requests":3,"replicas":4,"aaa":5,"aab":6,"aac":7})",
    R"(["äöü€😀"])",
};

TEST(QuickReader, TakesWhatIsOrdinaryAsTheOtherReaderReadsIt) {
    for (const std::string& text : ordinary) {
        check_takes(text);
    }
    std::string many = "{";
    for (int i = 0; i < 1000; ++i) {
        many.append("\"name_").append(std::to_string(i)).append("\":[").append(std::to_string(i)).append("],");
    }
    check_takes(many + "\"last\":{}}");
}

TEST(QuickReader, NeverTakesABeginningOfATextWhateverStandsBehindIt) {
    for (const std::string& text : ordinary) {
        for (std::size_t size = 0; size < text.size(); ++size) {
            const std::string_view part = std::string_view{text}.substr(0, size);
            const bool is_whole = by_the_other_reader(part).has_value();  // only spaces are missing
            for (const char filler : {' ', '"', ',', ':', '[', ']', '{', '}', '0', 'e', '\\', '\0'}) {
                QuickReader reader;
                const Padded padded(part, filler);
                EXPECT_EQ(reader.read(padded.text, {}), is_whole) << part << " before " << filler;
            }
        }
    }
}

// One character changed to another: taken only if the other reader takes it, and then with the same values.
TEST(QuickReader, TakesNothingThatTheOtherReaderRefuses) {
    for (const std::string& text : ordinary) {
        for (std::size_t at = 0; at < text.size(); ++at) {
            for (const char other :
                 {'"', ',', ':', '[', ']', '{', '}', '0', '-', '.', 'e', 't', ' ', '\\', '\x01', '\xC3'}) {
                std::string changed = text;
                changed[at] = other;
                QuickReader reader;
                const Padded padded(changed, ' ');
                if (reader.read(padded.text, {})) {
                    const auto document = by_the_other_reader(changed);
                    ASSERT_TRUE(document) << changed << ": " << document.error().message();
                    EXPECT_EQ(to_text(Value{reader.tape(), reader.strings(), 1}), to_text(document->root())) << changed;
                }
            }
        }
    }
}

TEST(QuickReader, LeavesToTheOtherReaderWhatIsWrongOrRare) {
    for (const std::string_view text : {"",
                                        " ",
                                        "1",
                                        "\"a\"",
                                        "true",
                                        "{}{}",
                                        "[1]2",
                                        "[1,]",
                                        "[,1]",
                                        "{\"a\":1,}",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{1:2}",
                                        "{\"a\" 1}",
                                        "[1 2]",
                                        "[01]",
                                        "[-]",
                                        "[1.]",
                                        "[.5]",
                                        "[1e]",
                                        "[+1]",
                                        "[1x]",
                                        "[truex]",
                                        "[tru]",
                                        "[nul]",
                                        "[\"a]",
                                        "[\"\x01\"]",
                                        "[\"\xFF\"]",
                                        "[\"\\x\"]",
                                        "[\"\\udc00\"]",
                                        "[\"\\ud800\"]",
                                        "[1234567890123456789]",
                                        "[18446744073709551616]",
                                        "[1e400]",
                                        "[1}",
                                        "{\"a\":1]",
                                        "[\"a\"b]",
                                        "[\"a\" \"b\"]",
                                        "{\"a\":\"b\"\"c\":1}"}) {
        EXPECT_FALSE(is_taken(text)) << text;
    }
}

TEST(QuickReader, SeesRepeatedNamesHoweverTheyAreWritten) {
    EXPECT_FALSE(is_taken(R"({"a":1,"a":2})"));
    EXPECT_FALSE(is_taken(R"({"a":1,"\u0061":2})"));
    EXPECT_FALSE(is_taken(R"({"":1,"":2})"));
    EXPECT_FALSE(is_taken(R"({"x\n":{},"":1,"":2})"));
    EXPECT_FALSE(is_taken(R"([{"b":{"k":1,"z":2,"k":3}}])"));
    EXPECT_TRUE(is_taken(R"({"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]})"));
    for (const std::size_t names : {23U, 24U, 25U, 26U, 100U}) {
        std::string text = "{";
        for (std::size_t i = 0; i < names; ++i) {
            text.append("\"n").append(std::to_string(1000 + i)).append("\":1,");
        }
        EXPECT_TRUE(is_taken(text + "\"other\":1}")) << names;
        EXPECT_FALSE(is_taken(text + "\"n1000\":1}")) << names;
        EXPECT_FALSE(is_taken(text + "\"n" + std::to_string(1000 + names - 1) + "\":1}")) << names;
    }
}

TEST(QuickReader, KeepsTheLimits) {
    const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
    EXPECT_TRUE(is_taken(nested(256)));
    EXPECT_FALSE(is_taken(nested(257)));
    EXPECT_TRUE(is_taken("[[]]", {.depth_max = 2}));
    EXPECT_FALSE(is_taken("[[]]", {.depth_max = 1}));
    EXPECT_TRUE(is_taken(R"([1,{"a":2}])", {.values_max = 5}));  // two containers, two numbers, a name
    EXPECT_FALSE(is_taken(R"([1,{"a":2}])", {.values_max = 4}));
}

TEST(QuickReader, IsUsedAgainForShorterAndLongerTexts) {
    QuickReader reader;
    for (int round = 0; round < 3; ++round) {
        for (const std::size_t elements : {1U, 50'000U, 3U}) {
            std::string text = "[";
            for (std::size_t i = 0; i < elements; ++i) {
                text += "1,";
            }
            const Padded padded(text + "[\"\\n\"]]", '"');
            ASSERT_TRUE(reader.read(padded.text, {}));
            EXPECT_EQ((Value{reader.tape(), reader.strings(), 1}.size()), elements + 1);
            EXPECT_FALSE(reader.read(Padded("[1", ']').text, {}));
        }
    }
}

}  // namespace
}  // namespace ossa::json
