// Every fuzz target over what is checked in (tests/fuzz/corpus/<target>), the shared vectors, and all their beginnings.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.hpp"
#include "conformance/mutate.hpp"
#include "fuzz/patch.hpp"
#include "fuzz/targets.hpp"

namespace ossa::fuzz {
namespace {

std::string read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

std::vector<std::filesystem::path> files(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
}

void replay(const Target& target, const std::string& bytes, const std::string& name) {
    try {
        target.run(bytes);
    } catch (const std::exception& complaint) {
        ADD_FAILURE() << target.name << " on " << name << ": " << complaint.what();
    }
}

class Replay : public ::testing::TestWithParam<Target> {};

TEST_P(Replay, TheCheckedInCorpus) {
    const std::filesystem::path folder = OSSA_SOURCE_DIR "/tests/fuzz/corpus/" + std::string(GetParam().name);
    ASSERT_TRUE(std::filesystem::is_directory(folder)) << folder;
    std::size_t seen = 0;
    for (const auto& file : files(folder)) {
        const std::string bytes = read(file);
        replay(GetParam(), bytes, file.filename().string());
        if (bytes.size() < 3'000) {
            for (std::size_t n = 0; n < bytes.size(); n += 1 + bytes.size() / 40) {
                replay(GetParam(), bytes.substr(0, n), file.filename().string() + " cut at " + std::to_string(n));
            }
        }
        ++seen;
    }
    EXPECT_GE(seen, 1U);
}

// Vectors as bare documents, as Agents and in reviews: each target takes what it can use.
TEST_P(Replay, TheVectors) {
    const std::string review_start =
        R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5","kind":{"group":"ossa.ai","version":"v1","kind":"Agent"},)"
        R"("resource":{"group":"ossa.ai","version":"v1","resource":"agents"},"name":"a","namespace":"team","operation":"CREATE","object":)";
    const std::string agent_start =
        R"({"apiVersion":"ossa.ai/v1","kind":"Agent","metadata":{"name":"a","namespace":"team"},"spec":)";
    std::size_t n = 0;
    for (const char* folder : {"vectors", "default-vectors"}) {
        for (const auto& file : files(std::filesystem::path(OSSA_TEST_DATA "/ossa-1.0") / folder)) {
            if (file.extension() != ".json" || n++ % 3 != 0) {
                continue;
            }
            const auto vector = json::Document::from(read(file), {.bytes_max = 8 << 20, .depth_max = 10'000});
            ASSERT_TRUE(vector) << file;
            json::Value document = vector->root().at("document");
            document = document.exists() ? document : vector->root().at("input");
            const std::string bare = json::to_text(document);
            const std::string agent = agent_start + bare + "}";
            for (const std::string& bytes : {bare, agent, review_start + agent + "}}"}) {
                if (bytes.size() < 100'000) {
                    replay(GetParam(), bytes, file.filename().string());
                }
            }
        }
    }
}

// A few minutes of real fuzzing are better; this keeps the targets honest where there is no clang.
TEST_P(Replay, RandomMutationsOfTheCorpus) {
    const std::uint64_t seed = testing::seed_or(7);
    testing::Random random{seed};
    const auto corpus = files(OSSA_SOURCE_DIR "/tests/fuzz/corpus/" + std::string(GetParam().name));
    for (int i = 0; i < 300 && !HasFailure(); ++i) {
        std::string bytes = read(corpus[random() % corpus.size()]).substr(0, 4'000);
        for (std::size_t edits = random() % 4 + 1; edits > 0 && !bytes.empty(); --edits) {
            const std::size_t at = random() % bytes.size();
            switch (random() % 4) {
                case 0: bytes[at] = static_cast<char>(random()); break;
                case 1: bytes.erase(at, random() % 8 + 1); break;
                case 2: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16)); break;
                default: bytes[at] = "\"{}[]:,0-9.eE\\/+#@%"[random() % 19]; break;
            }
        }
        replay(GetParam(), bytes, "OSSA_SEED=" + std::to_string(seed) + " number " + std::to_string(i));
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, ::testing::ValuesIn(targets),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(Patch, AppliesWhatRfc6902Says) {
    auto document = json::Document::from(R"({"a":{"b/c":1},"l":[1,2]})");
    auto patch = json::Document::from(
        R"([{"op":"add","path":"/a/d~1e","value":{"x":1}},{"op":"replace","path":"/l/0","value":3},{"op":"remove","path":"/a/b~1c"},{"op":"add","path":"/l/2","value":4}])");
    testing::Tree tree = testing::Tree::of(document->root());
    apply_patch(tree, patch->root());
    EXPECT_EQ(tree.print(), R"({"a":{"d/e":{"x":1}},"l":[3,2,4]})");
    EXPECT_EQ(from_base64("YWJj"), "abc");
    EXPECT_EQ(from_base64("YQ=="), "a");
    EXPECT_THROW(from_base64("YQ"), Complaint);
}

}  // namespace
}  // namespace ossa::fuzz
