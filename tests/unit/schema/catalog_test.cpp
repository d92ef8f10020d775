// Every rule id that the sources write is explained, and no explanation is left behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "schema/rule_catalog.hpp"

using namespace ossa::schema;

namespace {

// String literals of the rooms' sources that look like rule ids, except the catalog's own. What only the validator can
// say (engine/cross.cpp, over several documents) is in the validator's list.
std::set<std::string> ids_in_sources() {
    std::set<std::string> ids;
    for (const std::string_view room : {"schema", "engine"}) {
        for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(OSSA_SOURCE_DIR) / room)) {
            if (file.path().extension() != ".cpp" || file.path().filename() == "rule_catalog.cpp" ||
                file.path().filename() == "cross.cpp") {
                continue;
            }
            std::ifstream in(file.path());
            std::stringstream text;
            text << in.rdbuf();
            const std::string source = text.str();
            for (const std::string_view prefix : {"\"agent/", "\"tenantquota/", "\"schema/"}) {
                for (std::size_t at = source.find(prefix); at != std::string::npos; at = source.find(prefix, at + 1)) {
                    const std::size_t end = source.find('"', at + 1);
                    const std::string id = source.substr(at + 1, end - at - 1);
                    if (id.find('.') == std::string::npos && id.back() != '/') {  // not an #include, not a prefix
                        ids.insert(id);
                    }
                }
            }
        }
    }
    return ids;
}

}  // namespace

TEST(RuleCatalog, ExplainsEveryRuleThatTheSourcesName) {
    const std::set<std::string> ids = ids_in_sources();
    EXPECT_GT(ids.size(), 25U);
    for (const std::string& id : ids) {
        EXPECT_NE(find_rule(id), nullptr) << id;
    }
}

TEST(RuleCatalog, ExplainsNoRuleThatIsGone) {
    const std::set<std::string> ids = ids_in_sources();
    for (const RuleEntry& entry : rule_catalog()) {
        if (!entry.id.starts_with("schema/")) {
            EXPECT_TRUE(ids.contains(std::string(entry.id))) << entry.id;
        }
    }
}

TEST(RuleCatalog, ExplainsEveryKeywordThatThePlanReports) {
    for (const std::string_view keyword : {"anyOf",
                                           "const",
                                           "contains",
                                           "dependencies",
                                           "enum",
                                           "exclusiveMaximum",
                                           "exclusiveMinimum",
                                           "false",
                                           "format",
                                           "maxItems",
                                           "maxLength",
                                           "maxProperties",
                                           "maximum",
                                           "minItems",
                                           "minLength",
                                           "minProperties",
                                           "minimum",
                                           "multipleOf",
                                           "not",
                                           "oneOf",
                                           "pattern",
                                           "required",
                                           "type",
                                           "uniqueItems"}) {
        EXPECT_NE(find_rule("schema/" + std::string(keyword)), nullptr) << keyword;
    }
}

TEST(RuleCatalog, KnowsNothingElse) {
    EXPECT_EQ(find_rule(""), nullptr);
    EXPECT_EQ(find_rule("agent/nonsense"), nullptr);
    EXPECT_EQ(find_rule("zzz"), nullptr);
    for (const RuleEntry& entry : rule_catalog()) {
        EXPECT_EQ(find_rule(entry.id), &entry);
        EXPECT_FALSE(entry.text.empty()) << entry.id;
    }
}
