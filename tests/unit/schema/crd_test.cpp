#include "schema/crd.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "schema/schemas.hpp"

namespace ossa::schema {
namespace {

std::string checked_in(const std::string& name) {
    std::ifstream in(std::filesystem::path(OSSA_SOURCE_DIR) / "manifests" / "crds" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Line {
    std::string path;    // keys from the root, joined by '/'
    std::string parent;  // the last key before this one
    std::string key, value;
};

// Enough YAML for text that our own writer made: block style, one key a line, list items at the level of their key.
std::vector<Line> lines_of(const std::string& yaml) {
    std::vector<Line> lines;
    std::vector<std::pair<std::size_t, std::string>> open;
    std::istringstream in(yaml);
    for (std::string text; std::getline(in, text);) {
        const std::size_t indent = text.find_first_not_of(" -");
        const std::size_t colon = text.find(':');
        if (text.starts_with('#') || colon == std::string::npos || indent > colon) {
            continue;
        }
        while (!open.empty() && open.back().first >= indent) {
            open.pop_back();
        }
        Line line;
        for (const auto& [unused, key] : open) {
            line.path += key + "/";
        }
        line.parent = open.empty() ? "" : open.back().second;
        line.key = text.substr(indent, colon - indent);
        line.path += line.key;
        line.value = colon + 2 < text.size() ? text.substr(colon + 2) : "";
        open.emplace_back(indent, line.key);
        lines.push_back(std::move(line));
    }
    return lines;
}

// Lines that are keywords of the CRD's schema, as against names of members.
std::vector<Line> keywords_of(CrdKind kind) {
    std::vector<Line> keywords;
    for (Line& line : lines_of(crd_yaml(kind))) {
        const auto at = line.path.find("openAPIV3Schema/");
        if (at != std::string::npos && line.parent != "properties") {
            line.path.erase(0, at + std::string("openAPIV3Schema/").size());
            keywords.push_back(std::move(line));
        }
    }
    return keywords;
}

std::string keyword_at(CrdKind kind, const std::string& path) {
    for (const Line& line : keywords_of(kind)) {
        if (line.path == path) {
            return line.value;
        }
    }
    return "(none)";
}

TEST(Crd, TheCheckedInFilesAreWhatTheSchemasSay) {
    for (const CrdFile& crd : crds()) {
        EXPECT_EQ(checked_in(crd.name), crd.text) << "run: cmake --build build/dev --target crds";
    }
}

TEST(Crd, HasTypesAndDescriptionsOnly) {
    const std::set<std::string> allowed = {"description",
                                           "type",
                                           "properties",
                                           "items",
                                           "additionalProperties",
                                           "x-kubernetes-preserve-unknown-fields",
                                           "x-kubernetes-int-or-string",
                                           "x-kubernetes-list-type",
                                           "x-kubernetes-list-map-keys",
                                           "required"};
    for (const CrdKind kind : {CrdKind::agent, CrdKind::tenant_quota}) {
        const auto keywords = keywords_of(kind);
        ASSERT_GT(keywords.size(), 40U);
        for (const Line& line : keywords) {
            EXPECT_TRUE(allowed.contains(line.key)) << line.path;
        }
    }
}

TEST(Crd, RequiresOnlyTheKeyOfTheOneMapList) {
    std::vector<std::string> found;
    for (const Line& line : keywords_of(CrdKind::agent)) {
        if (line.key == "required" || line.key == "x-kubernetes-list-map-keys") {
            found.push_back(line.path);
        }
    }
    const std::string env = "properties/spec/properties/workload/properties/env/";
    EXPECT_EQ(found, (std::vector<std::string>{env + "x-kubernetes-list-map-keys", env + "items/required"}));
}

TEST(Crd, KeepsWhatItDoesNotKnow) {
    const std::string keep = "/x-kubernetes-preserve-unknown-fields";
    const std::string agent = "properties/spec/properties/agent";
    for (const std::string& path : {std::string("properties/spec"), agent, agent + "/properties/runtime",
                                    agent + "/properties/capabilities/items/properties/input_schema",
                                    agent + "/properties/integration/properties/auth/properties/config",
                                    std::string("properties/spec/properties/workload/properties/affinity")}) {
        EXPECT_EQ(keyword_at(CrdKind::agent, path + keep), "true") << path;
    }
    const std::string capability = agent + "/properties/capabilities/items/properties/";
    EXPECT_EQ(keyword_at(CrdKind::agent, capability + "input_schema/type"), "(none)");
    EXPECT_EQ(keyword_at(CrdKind::agent, "properties/spec/properties/workload/properties/volumes/type"), "(none)");
    EXPECT_EQ(keyword_at(CrdKind::agent, "properties/status" + keep), "(none)");
}

TEST(Crd, DescribesEveryMemberOfTheSpec) {
    std::set<std::string> members;
    std::set<std::string> described;
    for (const Line& line : lines_of(crd_yaml(CrdKind::agent))) {
        if (line.path.find("/properties/spec/") == std::string::npos) {
            continue;
        }
        if (line.parent == "properties") {
            members.insert(line.path);
        } else if (line.key == "description") {
            described.insert(line.path.substr(0, line.path.size() - std::string("/description").size()));
        }
    }
    EXPECT_GT(members.size(), 180U);
    for (const std::string& member : members) {
        EXPECT_TRUE(described.contains(member)) << member;
    }
}

}  // namespace
}  // namespace ossa::schema
