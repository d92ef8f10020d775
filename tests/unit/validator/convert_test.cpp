#include "validator/convert.hpp"

#include <gtest/gtest.h>

#include "base/yaml.hpp"
#include "validator/yaml_writer.hpp"

namespace ossa::validator {
namespace {

TEST(YamlWriter, WritesWhatReadsBackEqual) {
    constexpr std::string_view text =
        R"({"a":{"b":[],"c":{},"d":[[1,[2]],{"e":"yes","f":[{"g":null}]}]},"on":"010","x y":" lead","t":"a: b","u":"#",)"
        R"("n":"null","m":"multi\nline","z":1.5,"q":"- a","tr":"tail ","col":"a:","e":"","w":"*a","p":"50%"})";
    const auto document = json::Document::from(text);
    ASSERT_TRUE(document);
    std::string out;
    append_yaml(out, document->root());
    yaml::Part part;
    part.text = out;
    yaml::Document back;
    const auto problem = back.read(part, {});
    ASSERT_FALSE(problem) << problem->message << "\n" << out;
    EXPECT_TRUE(json::equal(document->root(), back.root())) << out;
}

TEST(Convert, NamesThatFitNowhereAreMended) {
    const auto document = json::Document::from(
        R"({"ossaVersion":"1.0","extra":1,"agent":{"id":"9-lives-and-a-name-that-is-longer-than-fifty-characters-x"}})");
    const Converted out = convert(document->root(), {});
    ASSERT_TRUE(out.known);
    EXPECT_NE(out.yaml.find("name: agent-9-lives-and-a-name-that-is-longer-than-fifty\n"), std::string::npos)
        << out.yaml;
    EXPECT_EQ(out.notes.size(), 2U);
}

}  // namespace
}  // namespace ossa::validator
