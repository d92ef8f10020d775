#include "kube/runtime/informer.hpp"

#include <gtest/gtest.h>

namespace ossa::kube {
namespace {

struct Kept {
    std::string version;
};

struct Fixture {
    std::vector<std::string> told;
    Informer<Kept> informer{
        [](json::Value object) { return Kept{std::string{object.at("metadata").at("resourceVersion").string_or("")}}; },
        [this](const ObjectKey& key, const Kept* before, const Kept* after, const std::string& removed_at) {
            told.push_back(key.namespace_ + "/" + key.name + " " + (before != nullptr ? before->version : "-") + ">" +
                           (after != nullptr ? after->version : "-") + (removed_at.empty() ? "" : " at " + removed_at));
        }};
    static json::Document object(const std::string& ns, const std::string& name, const std::string& version) {
        return std::move(*json::Document::from(R"({"metadata":{"namespace":")" + ns + R"(","name":")" + name +
                                               R"(","resourceVersion":")" + version + R"("}})"));
    }
    void put(const std::string& ns, const std::string& name, const std::string& version) {
        const auto document = object(ns, name, version);
        informer.put(document.root());
    }
    void remove(const std::string& ns, const std::string& name, const std::string& version) {
        const auto document = object(ns, name, version);
        informer.remove(document.root());
    }
    std::vector<std::string> taken() { return std::exchange(told, {}); }
};
using Told = std::vector<std::string>;

TEST(Informer, NothingIsSeenOfAListBeforeItIsComplete) {
    Fixture f;
    f.informer.begin();
    f.put("a", "x", "3");
    EXPECT_FALSE(f.informer.synced());
    EXPECT_EQ(f.informer.find({"a", "x"}), nullptr);
    EXPECT_EQ(f.taken(), Told{});
    f.informer.swap("5");
    EXPECT_TRUE(f.informer.synced());
    EXPECT_EQ(f.informer.version(), "5");
    EXPECT_EQ(f.taken(), Told{"a/x ->3"});
}

TEST(Informer, EventsChangeTheStoreAndItsVersion) {
    Fixture f;
    f.informer.begin();
    f.informer.swap("5");
    f.put("a", "x", "6");
    f.put("a", "x", "8");
    EXPECT_EQ(f.informer.version(), "8");
    f.remove("a", "x", "9");
    EXPECT_EQ(f.informer.version(), "9");
    EXPECT_EQ(f.taken(), (Told{"a/x ->6", "a/x 6>8", "a/x 9>- at 9"}));
    f.informer.note("20");
    EXPECT_EQ(f.informer.version(), "20");
}

// R047: a relist takes the old Store's place at once; what went meanwhile is told as gone.
TEST(Informer, R047_ARelistIsSwappedInWhole) {
    Fixture f;
    f.informer.begin();
    f.put("a", "x", "3");
    f.put("a", "y", "4");
    f.informer.swap("5");
    f.taken();
    f.informer.begin();
    f.put("a", "y", "7");
    f.put("b", "z", "8");
    ASSERT_NE(f.informer.find({"a", "x"}), nullptr) << "the old one is in use until then";
    EXPECT_EQ(f.informer.version(), "5");
    f.informer.swap("9");
    EXPECT_EQ(f.taken(), (Told{"a/x 3>-", "a/y 4>7", "b/z ->8"}));
    EXPECT_EQ(f.informer.find({"a", "x"}), nullptr);
}

TEST(Informer, AListThatBeginsAgainForgetsItsFirstHalf) {
    Fixture f;
    f.informer.begin();
    f.put("a", "x", "3");
    f.informer.begin();
    f.put("a", "y", "4");
    f.informer.swap("5");
    EXPECT_EQ(f.taken(), Told{"a/y ->4"});
}

TEST(Informer, ANamespaceIsARange) {
    Fixture f;
    f.informer.begin();
    for (const char* ns : {"a", "a-b", "aa", "b"}) {
        f.put(ns, "x", "1");
        f.put(ns, "y", "1");
    }
    f.informer.swap("5");
    for (const char* ns : {"a", "a-b", "aa", "b"}) {
        const auto [first, last] = f.informer.in(ns);
        EXPECT_EQ(std::distance(first, last), 2) << ns;
    }
    const auto [first, last] = f.informer.in("c");
    EXPECT_EQ(first, last);
}

}  // namespace
}  // namespace ossa::kube
