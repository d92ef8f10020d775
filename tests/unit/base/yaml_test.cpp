#include "base/yaml.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "base/yaml_tree.hpp"

namespace ossa::yaml {
namespace {

std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

// Equal but for how a double is printed: the oracle's 18446744073709552000 is our 18446744073709551616.
bool same(json::Value a, json::Value b) {
    if (a.is_number() && b.is_number()) {
        return *a.as_double() == *b.as_double() && (!a.as_int64() || a.as_int64() == b.as_int64());
    }
    if (a.is_object() && b.is_object() && a.size() == b.size()) {
        for (const json::Member member : a.members()) {
            if (!same(member.value, b.at(member.name))) {
                return false;
            }
        }
        return true;
    }
    return json::equal(a, b);
}

struct Answer {
    std::optional<Problem> problem;
    std::string value;
    std::vector<Remark> remarks;
};

Answer read(std::string_view text, ReadAs how = ReadAs::quick_if_possible) {
    Part part;
    part.text = text;
    Document document;
    Answer answer;
    answer.problem = document.read(part, {}, how);
    if (!answer.problem) {
        answer.value = document.root().exists() ? json::to_text(document.root()) : "null";
    }
    answer.remarks = document.remarks();
    return answer;
}

TEST(YamlOracle, ReadsWhatKubectlsLibraryReads) {
    // Text -> why we differ on purpose.
    const std::set<std::string> refused_by_kubectl_only = {
        "v: \"\\/\"",  // libyaml takes the escape that go-yaml v2 does not know
    };
    const std::set<std::string> undecided_by_kubectl = {
        "1: x\n\"1\": y",  // two names become one; Go takes either
    };
    const auto answers = json::Document::from(read_file(OSSA_TEST_DATA "/yaml-oracle/answers.json"));
    ASSERT_TRUE(answers) << answers.error().message();
    std::size_t cases = 0;
    for (const json::Value one : answers->root().elements()) {
        const std::string text{one.at("text").string_or("")};
        if (undecided_by_kubectl.contains(text)) {
            continue;
        }
        ++cases;
        for (const ReadAs how : {ReadAs::quick_if_possible, ReadAs::libyaml}) {
            const Answer ours = read(text, how);
            if (one.at("error").exists()) {
                const bool remarked = std::any_of(ours.remarks.begin(), ours.remarks.end(), [](const Remark& remark) {
                    return remark.kind == RemarkKind::not_finite;
                });
                EXPECT_TRUE(ours.problem || remarked || refused_by_kubectl_only.contains(text))
                    << text << " -> " << ours.value;
                continue;
            }
            ASSERT_FALSE(ours.problem) << text << ": " << ours.problem->message;
            const auto value = json::Document::from(ours.value);
            ASSERT_TRUE(value);
            EXPECT_TRUE(same(one.at("value"), value->root()) || same(value->root(), one.at("value")))
                << text << "\n kubectl " << json::to_text(one.at("value")) << "\n ours    " << ours.value;
        }
    }
    EXPECT_GT(cases, 200U);
}

// Both ways to a tree must give the same tree, or the quick one gives up.
void compare_trees(const std::string& text) {
    Tree quick;
    Tree full;
    quick.source = full.source = text;
    const Limits limits;
    if (!scan_quick(quick, limits)) {
        return;
    }
    const auto problem = scan_libyaml(full, limits);
    ASSERT_FALSE(problem) << problem->message << "\n" << text;
    ASSERT_FALSE(full.rest.known()) << text;
    ASSERT_EQ(quick.nodes.size(), full.nodes.size()) << text;
    for (std::size_t i = 0; i < quick.nodes.size(); ++i) {
        const Node& a = quick.nodes[i];
        const Node& b = full.nodes[i];
        const bool equal = a.kind == b.kind && a.style == b.style && a.tag == b.tag && a.next == b.next &&
                           a.view() == b.view() && a.line == b.line && a.column == b.column &&
                           (a.kind != NodeKind::scalar || a.style == Style::block || a.width == b.width);
        ASSERT_TRUE(equal) << "node " << i << " " << a.view() << " at " << a.line << ":" << a.column << "\n" << text;
    }
}

TEST(YamlQuick, AgreesWithLibyamlOverTheCorpusAndItsMutations) {
    std::vector<std::string> texts;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(OSSA_TEST_DATA "/ossa-1.0/corpus")) {
        if (entry.path().extension() != ".yaml") {
            continue;
        }
        const std::string stream = read_file(entry.path());
        Splitter splitter(stream);
        while (const auto part = splitter.next()) {
            texts.push_back(std::string{part->text} + (part->text.ends_with('\n') ? "" : "\n"));
        }
    }
    ASSERT_GT(texts.size(), 100U);
    for (const std::string& text : texts) {
        compare_trees(text);
    }
    constexpr const char* pieces[] = {" ",    "  ",   "\n",   ":", ": ",   "- ", "-",   "#", " #",           "'",
                                      "\"",   "|",    ">",    "[", "]",    "{",  "}",   ",", "\\",           "?",
                                      "&a",   "*a",   "!",    "%", "\n\n", "\t", "...", "é", "\xe2\x80\xa8", "~",
                                      "<<: ", "|-\n", "\r\n", "@", "`"};
    constexpr unsigned seed = 1;
    std::mt19937 random(seed);
    for (int i = 0; i < 20'000; ++i) {
        std::string text = texts[random() % texts.size()];
        if (text.size() > 1500) {
            const std::size_t from = text.find('\n', random() % (text.size() - 1000));
            text = text.substr(from + 1, 1000);
        }
        text += '\n';
        for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
            const std::size_t at = random() % text.size();
            if (random() % 3 == 0) {
                text.erase(at, 1 + random() % 3);
            } else {
                text.insert(at, pieces[random() % std::size(pieces)]);
            }
            text += text.ends_with('\n') ? "" : "\n";
        }
        compare_trees(text);
        if (HasFatalFailure()) {
            FAIL() << "seed " << seed << " case " << i;
        }
    }
}

std::vector<std::string> parts_of(std::string_view stream) {
    std::vector<std::string> out;
    Splitter splitter(stream);
    while (const auto part = splitter.next()) {
        out.push_back(std::to_string(part->first_line) + (part->notation == Notation::json ? "j " : " ") +
                      std::string{part->text} + (part->problem ? "!" : ""));
    }
    return out;
}

TEST(YamlSplitter, CutsWhereKubectlCuts) {
    using Parts = std::vector<std::string>;
    EXPECT_EQ(parts_of(""), Parts{});
    EXPECT_EQ(parts_of("---\n---\n"), Parts{});
    EXPECT_EQ(parts_of("a: 1\n---\nb: 2"), (Parts{"1 a: 1\n", "3 b: 2"}));
    EXPECT_EQ(parts_of("# c\n--- # d\n\n---\nb: 2\n"), (Parts{"1 # c\n", "3 \n", "5 b: 2\n"}));
    EXPECT_EQ(parts_of("a: 1\r\n---\r\nb: 2\r\n"), (Parts{"1 a: 1\r\n", "3 b: 2\r\n"}));
    EXPECT_EQ(parts_of("--- a\nb: 1\n"), (Parts{"1 !", "2 b: 1\n"}));
    EXPECT_EQ(parts_of("{\"a\": 1}\n{\"b\":\n2}\n"), (Parts{"1j {\"a\": 1}", "2j {\"b\":\n2}"}));
    EXPECT_EQ(parts_of("{\"a\": 1}\n---\nb: 2\n"), (Parts{"1j {\"a\": 1}", "3 b: 2\n"}));
    EXPECT_EQ(parts_of("{a: 1}\n"), (Parts{"1 {a: 1}\n"}));
    std::string many;
    for (int i = 0; i < 100'000; ++i) {
        many += "---\n";
    }
    EXPECT_EQ(parts_of(many), Parts{});
}

std::string place_of(std::string_view text, std::string_view pointer, Notation notation = Notation::yaml) {
    Part part;
    part.text = text;
    part.notation = notation;
    part.first_line = 10;
    Document document;
    if (const auto problem = document.read(part, {})) {
        return problem->message;
    }
    const auto spot = document.find(pointer);
    if (!spot) {
        return "nothing";
    }
    const auto shown = [](const Place& place) {
        return place.known() ? std::to_string(place.line) + ":" + std::to_string(place.column) + "+" +
                                   std::to_string(place.length)
                             : std::string{"-"};
    };
    return shown(spot->key) + " " + shown(spot->value) + " " + std::string{spot->text};
}

TEST(YamlPlaces, AreThoseOfTheText) {
    constexpr std::string_view text =
        "a:\n  b/c: [x, \"y\"]   # c\n  d~e:\n  é: ü\nf: &f {g: 1}\nh: *f\ni:\n  <<: *f\n  j: |\n    k\n";
    EXPECT_EQ(place_of(text, ""), "- 10:1+1 ");
    EXPECT_EQ(place_of(text, "/a/b~1c/1"), "- 11:12+3 y");
    EXPECT_EQ(place_of(text, "/a/b~1c"), "11:3+3 11:8+1 ");
    EXPECT_EQ(place_of(text, "/a/d~0e"), "12:3+3 12:7+0 ");
    EXPECT_EQ(place_of(text, "/a/é"), "13:3+1 13:6+1 ü");
    EXPECT_EQ(place_of(text, "/h/g"), "14:8+1 14:11+1 1");
    EXPECT_EQ(place_of(text, "/i/g"), "14:8+1 14:11+1 1");
    EXPECT_EQ(place_of(text, "/h"), "15:1+1 15:4+2 ");
    EXPECT_EQ(place_of(text, "/i/x"), "nothing");
    EXPECT_EQ(place_of("{\"a\": {\n \"b\\u002f\": [1, true]}}", "/a/b~1/1", Notation::json), "- 11:17+4 true");
}

TEST(YamlRemarks, TellWhatTheValueNoLongerShows) {
    const auto kinds = [](std::string_view text) {
        std::string out;
        for (const Remark& remark : read(text).remarks) {
            out += std::to_string(static_cast<int>(remark.kind)) + "@" + std::to_string(remark.place.line) +
                   remark.pointer + " ";
        }
        return out;
    };
    EXPECT_EQ(kinds("a: 1\nb: 2\na: 3\n"), "0@3/a ");
    EXPECT_EQ(read("a: 1\nb: 2\na: 3\n").value, R"({"a":3,"b":2})");
    EXPECT_EQ(kinds("a: [.inf]\n"), "1@1/a/0 ");
    EXPECT_EQ(kinds("a: 1\n...\nb: 2\n"), "2@3 ");
    EXPECT_EQ(kinds("on: 1\ntrue: 2\n"), "3@1/true 0@2/true ");
    EXPECT_EQ(kinds("a: yes\nb: true\nc: \"yes\"\n"), "4@1/a ");
    EXPECT_EQ(kinds("a: 010\nb: 1_0\nc: 10\nd: 0x1f\ne: 0o17\nf: 1.5\n"), "5@1/a 5@2/b ");
    EXPECT_EQ(kinds("a: &a {x: 1}\nb: {x: 2, <<: *a}\nc: {<<: *a, x: 2}\n"), "6@2/b/x ");
    // What stands behind an anchor is remarked where it is written, once.
    EXPECT_EQ(kinds("a: &a {x: yes}\nb: *a\nc: *a\n"), "4@1/a/x ");
}

TEST(YamlLimits, RefuseInBoundedMemory) {
    const auto rule = [](const std::string& text, const Limits& limits = {}) {
        Part part;
        part.text = text;
        Document document;
        const auto problem = document.read(part, limits);
        return problem ? problem->rule : "";
    };
    EXPECT_EQ(rule(std::string(1'000'000, '[')), "yaml/depth");
    EXPECT_EQ(rule("a: " + std::string(10'000, '[')), "yaml/depth");
    std::string nested;
    for (int i = 0; i < 2000; ++i) {
        nested += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
    }
    EXPECT_EQ(rule(nested), "yaml/depth");
    const auto lists = [](std::size_t depth) {
        return "a: " + std::string(depth, '[') + std::string(depth, ']') + "\n";
    };
    EXPECT_EQ(rule(lists(249)), "");
    EXPECT_EQ(rule(lists(250)), "yaml/depth");
    EXPECT_EQ(rule("a: bcdef\n", {.bytes_max = 5}), "yaml/size");
    EXPECT_EQ(rule("a: [1, 2, 3, 4, 5]\n", {.values_max = 5}), "yaml/size");
    EXPECT_EQ(rule("a: &a " + std::string(3000, 'x') + "\nb: [*a, *a, *a]\n", {.bytes_max = 5000}), "yaml/size");
    std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
    for (char c = 'b'; c < 'k'; ++c) {
        bomb += std::string{c} + ": &" + c + " [";
        for (int i = 0; i < 9; ++i) {
            bomb += std::string{i == 0 ? "*" : ",*"} + static_cast<char>(c - 1);
        }
        bomb += "]\n";
    }
    EXPECT_EQ(rule(bomb), "yaml/alias");
    EXPECT_EQ(rule("a: &a {b: *a}\n"), "yaml/alias");
    EXPECT_EQ(rule("a: &a {<<: *a}\n"), "yaml/alias");
}

TEST(YamlScalar, KnowsTheFormsOfNumbers) {
    EXPECT_EQ(resolve("0x10").integer, 16);
    EXPECT_EQ(resolve("-010").integer, -8);
    EXPECT_EQ(resolve("18446744073709551615").unsigned_integer, UINT64_MAX);
    EXPECT_EQ(resolve("1e3").number, 1000);
    EXPECT_EQ(resolve("1e-400").kind, Scalar::Kind::number);
    EXPECT_EQ(resolve("1e400").kind, Scalar::Kind::string);
    EXPECT_EQ(resolve("+.INF").kind, Scalar::Kind::not_finite);
    EXPECT_EQ(resolve("2026-01-01").kind, Scalar::Kind::string);
    EXPECT_EQ(resolve("--1").kind, Scalar::Kind::string);
}

}  // namespace
}  // namespace ossa::yaml
