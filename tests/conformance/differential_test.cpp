// The compiled plan and valijson agree: in the verdict and in every place that is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/yaml.hpp"
#include "conformance/mutate.hpp"
#include "conformance/oracle.hpp"
#include "schema/plan.hpp"
#include "schema/schemas.hpp"

namespace ossa {
namespace {

using oracle::Opinion;
using testing::Tree;

const std::filesystem::path data = OSSA_TEST_DATA "/ossa-1.0";

std::string read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

std::vector<std::filesystem::path> files(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        const auto extension = entry.path().extension();
        if (extension == ".json" || extension == ".yaml" || extension == ".yml") {
            out.push_back(entry.path());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

const oracle::Oracle& ossa_oracle() {
    static const oracle::Oracle made{schema::ossa_schema_text()};
    return made;
}

Opinion plan_says(json::Value document) {
    static schema::RunResult run;
    run.clear();
    schema::ossa_plan().run(document, {.base_pointer = "", .errors_max = SIZE_MAX}, run);
    Opinion out{run.errors.empty(), {}};
    for (const kube::Finding& finding : run.errors) {
        out.leaves.insert(finding.pointer);
    }
    return out;
}

std::string words(const Opinion& opinion) {
    std::string out = opinion.valid ? "valid" : "invalid";
    for (const std::string& leaf : opinion.leaves) {
        out += " " + (leaf.empty() ? "<root>" : leaf);
    }
    return out;
}

::testing::AssertionResult agree(json::Value document) {
    const Opinion ours = plan_says(document);
    const Opinion theirs = ossa_oracle().judge(document);
    if (ours == theirs) {
        return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "plan: " << words(ours) << "\noracle: " << words(theirs)
                                         << "\ndocument: " << json::to_text(document).substr(0, 4000);
}

// Every document of the corpus, YAML or JSON.
template <class Use>
std::size_t for_each_corpus_document(const Use& use) {
    std::size_t seen = 0;
    for (const auto& file : files(data / "corpus")) {
        const std::string text = read(file);
        yaml::Splitter parts{text};
        while (const auto part = parts.next()) {
            yaml::Document document;
            if (!part->problem && !document.read(*part, {}) && document.root().exists()) {
                use(file.filename().string(), document.root());
                ++seen;
            }
        }
    }
    return seen;
}

TEST(Differential, PlanAndOracleAgreeOnEveryVector) {
    std::size_t seen = 0;
    for (const auto& file : files(data / "vectors")) {
        const auto vector = json::Document::from(read(file), {.bytes_max = 8 << 20, .depth_max = 10'000});
        ASSERT_TRUE(vector) << file;
        EXPECT_TRUE(agree(vector->root().at("document"))) << file;
        EXPECT_EQ(ossa_oracle().judge(vector->root().at("document")).valid, vector->root().at("valid").bool_or(false))
            << file;
        ++seen;
    }
    EXPECT_GE(seen, 756U);
}

TEST(Differential, PlanAndOracleAgreeOnTheCorpus) {
    const std::size_t seen = for_each_corpus_document(
        [](const std::string& name, json::Value document) { EXPECT_TRUE(agree(document)) << name; });
    EXPECT_GE(seen, 150U);
}

// The corpus index says what another validator found; the verdict is compared here, the places above.
TEST(Differential, TheCorpusVerdictsAreThoseOfTheIndex) {
    std::ifstream index(data / "corpus" / "index.tsv");
    std::string line;
    std::getline(index, line);
    std::size_t seen = 0;
    while (std::getline(index, line)) {
        const std::string name = line.substr(0, line.find('\t'));
        std::string verdict = line.substr(name.size() + 1);
        verdict = verdict.substr(0, verdict.find('\t'));
        if (verdict != "valid" && verdict != "invalid") {
            continue;
        }
        const std::string text = read(data / "corpus" / name);
        yaml::Splitter parts{text};
        bool valid = true;
        while (const auto part = parts.next()) {
            yaml::Document document;
            ASSERT_FALSE(part->problem) << name;
            ASSERT_FALSE(document.read(*part, {})) << name;
            valid = (!document.root().exists() || plan_says(document.root()).valid) && valid;
        }
        EXPECT_EQ(valid, verdict == "valid") << name;
        ++seen;
    }
    EXPECT_GE(seen, 100U);
}

TEST(Differential, PlanAndOracleAgreeOnRandomMutations) {
    const std::uint64_t seed = testing::seed_or(20'260'101);
    std::cout << "OSSA_SEED=" << seed << "\n";
    testing::Random random{seed};
    std::vector<Tree> seeds;
    std::vector<std::size_t> valid_seeds;  // few, but what is nearly valid shows more
    const auto add = [&](json::Value seed_document) {
        if (plan_says(seed_document).valid) {
            valid_seeds.push_back(seeds.size());
        }
        seeds.push_back(Tree::of(seed_document));
    };
    for (const auto& file : files(data / "vectors")) {
        const auto vector = json::Document::from(read(file), {.bytes_max = 8 << 20, .depth_max = 10'000});
        ASSERT_TRUE(vector) << file;
        const json::Value document = vector->root().at("document");
        if (json::to_text(document).size() < 8'000) {
            add(document);
        }
    }
    for_each_corpus_document([&](const std::string&, json::Value document) { add(document); });

    std::size_t judged = 0;
    std::size_t invalid = 0;
    std::size_t disagreed = 0;
    json::Document document;
    while (judged < 20'000) {
        const bool from_valid = random() % 2 == 0;
        Tree tree = from_valid ? seeds[valid_seeds[random() % valid_seeds.size()]] : seeds[random() % seeds.size()];
        testing::mutate(tree, seeds, random);
        if (!document.parse(tree.print(), {})) {
            continue;  // a repeated name, or too deep
        }
        ++judged;
        invalid += plan_says(document.root()).valid ? 0 : 1;
        if (const auto agreed = agree(document.root()); !agreed) {
            ADD_FAILURE() << "mutation " << judged << " of seed " << seed << "\n" << agreed.message();
            if (++disagreed == 5) {
                break;
            }
        }
    }
    // Mutations that are all valid or all invalid would show nothing.
    EXPECT_GT(invalid, judged / 10);
    EXPECT_LT(invalid, judged - judged / 20);
    std::cout << judged << " judged, " << invalid << " invalid\n";
}

TEST(Differential, BothUriGrammarsAgreeOnRandomTexts) {
    const std::uint64_t seed = testing::seed_or(3986);
    std::cout << "OSSA_SEED=" << seed << "\n";
    testing::Random random{seed};
    static const std::vector<std::string> pieces{"http",
                                                 "a",
                                                 "Z",
                                                 "9",
                                                 "0",
                                                 "1.2.3.4",
                                                 "::",
                                                 ":",
                                                 "1:2:3:4:5:6:7:8",
                                                 "ffff",
                                                 "::1",
                                                 "[",
                                                 "]",
                                                 "/",
                                                 "//",
                                                 "?",
                                                 "#",
                                                 "@",
                                                 "%41",
                                                 "%4",
                                                 "%",
                                                 "%zz",
                                                 "+",
                                                 "-",
                                                 ".",
                                                 "_",
                                                 "~",
                                                 "!",
                                                 "$",
                                                 "&",
                                                 "'",
                                                 "(",
                                                 ")",
                                                 "*",
                                                 ",",
                                                 ";",
                                                 "=",
                                                 " ",
                                                 "\"",
                                                 "<",
                                                 "\\",
                                                 "^",
                                                 "{",
                                                 "|",
                                                 "é",
                                                 "v1.",
                                                 "vF.x",
                                                 "256",
                                                 "01",
                                                 "8080",
                                                 std::string(1, '\0'),
                                                 "\n",
                                                 "[::ffff:1.2.3.4]",
                                                 "[1::]",
                                                 "g"};
    std::size_t absolute = 0;
    for (int i = 0; i < 200'000; ++i) {
        std::string text = random() % 3 != 0 ? "s:" : "";
        text += random() % 2 != 0 ? "//" : "";
        text += random() % 4 == 0 ? "[" : "";
        for (std::size_t n = random() % 7; n > 0; --n) {
            text += pieces[random() % pieces.size()];
        }
        text += random() % 4 == 0 ? "]" : "";
        const bool ours = schema::is_absolute_uri(text);
        absolute += ours ? 1 : 0;
        ASSERT_EQ(ours, oracle::is_uri(text)) << "seed " << seed << ", text " << ::testing::PrintToString(text);
    }
    EXPECT_GT(absolute, 10'000U);
}

}  // namespace
}  // namespace ossa
