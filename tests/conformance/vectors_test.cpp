// Every shared vector through the library: verdict, complete set of (pointer, keyword, property), and the defaults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "schema/plan.hpp"
#include "schema/schemas.hpp"

namespace ossa {
namespace {

std::string read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

std::vector<std::filesystem::path> files(const std::string& folder) {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(std::string(OSSA_TEST_DATA "/ossa-1.0/") + folder)) {
        if (entry.path().extension() == ".json") {
            out.push_back(entry.path());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

using Key = std::tuple<std::string, std::string, std::string>;

TEST(Vectors, TheCompiledPlanGivesEveryListedVerdictAndError) {
    std::size_t seen = 0;
    for (const auto& file : files("vectors")) {
        auto document = json::Document::from(read(file), {.bytes_max = 8 << 20, .depth_max = 10'000});
        ASSERT_TRUE(document) << file << document.error().message();
        const json::Value vector = document->root();
        schema::RunResult result;
        schema::ossa_plan().run(vector.at("document"), {}, result);
        std::multiset<Key> expected;
        for (const json::Value error : vector.at("errors").elements()) {
            expected.emplace(error.at("path").string_or(""), error.at("keyword").string_or(""),
                             error.at("property").string_or(""));
        }
        std::multiset<Key> found;
        for (const kube::Finding& finding : result.errors) {
            found.emplace(finding.pointer, finding.rule.substr(sizeof("schema/") - 1), finding.member);
        }
        EXPECT_EQ(result.errors.empty(), vector.at("valid").bool_or(false)) << file;
        EXPECT_EQ(found, expected) << file;
        ++seen;
    }
    EXPECT_GE(seen, 756U);
}

TEST(DefaultVectors, TheFillsAreExactlyTheListedPatch) {
    std::size_t seen = 0;
    for (const auto& file : files("default-vectors")) {
        auto document = json::Document::from(read(file), {});
        ASSERT_TRUE(document) << file << document.error().message();
        const json::Value vector = document->root();
        schema::RunResult result;
        schema::ossa_plan().run(vector.at("input"), {.base_pointer = "", .collect_fills = true}, result);
        std::set<std::pair<std::string, std::string>> expected;
        for (const json::Value op : vector.at("patch").elements()) {
            expected.emplace(op.at("path").string_or(""), json::to_text(op.at("value")));
        }
        std::set<std::pair<std::string, std::string>> found;
        for (const schema::Fill& fill : result.fills) {
            found.emplace(fill.pointer, std::string(fill.value));
        }
        EXPECT_EQ(found, expected) << file;
        EXPECT_EQ(result.errors.empty(), vector.at("valid").bool_or(false)) << file;

        schema::RunResult again;
        schema::ossa_plan().run(vector.at("defaulted"), {.base_pointer = "", .collect_fills = true}, again);
        EXPECT_TRUE(again.fills.empty()) << file << ": defaulting its own output fills again";
        ++seen;
    }
    EXPECT_GE(seen, 25U);
}

}  // namespace
}  // namespace ossa
