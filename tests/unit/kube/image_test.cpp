#include "kube/types/image.hpp"

#include <gtest/gtest.h>

#include <string>

using ossa::kube::ImageReference;

namespace {

const std::string sha = "sha256:" + std::string(64, 'a');

struct Parts {
    std::string_view host, path, tag, digest;
};

void check(std::string_view text, const Parts& want) {
    const auto got = ImageReference::parse(text);
    ASSERT_TRUE(got.has_value()) << text << ": " << got.error();
    EXPECT_EQ(got->host, want.host) << text;
    EXPECT_EQ(got->path, want.path) << text;
    EXPECT_EQ(got->tag, want.tag) << text;
    EXPECT_EQ(got->digest, want.digest) << text;
}

void refuse(std::string_view text) {
    EXPECT_FALSE(ImageReference::parse(text).has_value()) << text.substr(0, 100);
}

}  // namespace

TEST(ImageReference, SplitsHostPathTagAndDigest) {
    check("nginx", {"", "nginx", "", ""});
    check("nginx:1.25", {"", "nginx", "1.25", ""});
    check("team/app", {"", "team/app", "", ""});
    check("registry.example/team/app:1.2.0", {"registry.example", "team/app", "1.2.0", ""});
    check("registry.example:5000/app", {"registry.example:5000", "app", "", ""});
    check("localhost/app:x", {"localhost", "app", "x", ""});
    check("localhost:5000/app", {"localhost:5000", "app", "", ""});
    check("10.0.0.1/app", {"10.0.0.1", "app", "", ""});
    check("[2001:db8::1]:5000/app:1", {"[2001:db8::1]:5000", "app", "1", ""});
    check("Registry/app", {"Registry", "app", "", ""});
    check("a/b/c/d", {"", "a/b/c/d", "", ""});
    check("a__b/c---d/e.f_g", {"", "a__b/c---d/e.f_g", "", ""});
    check("app@" + sha, {"", "app", "", sha});
    check("r.example/app:1@" + sha, {"r.example", "app", "1", sha});
    check("app:_Tag.1-x", {"", "app", "_Tag.1-x", ""});
    check("app:5000", {"", "app", "5000", ""});
}

TEST(ImageReference, SaysWhenAnotherImageMayRunTomorrow) {
    EXPECT_TRUE(ImageReference::parse("app")->floats());
    EXPECT_TRUE(ImageReference::parse("app:latest")->floats());
    EXPECT_FALSE(ImageReference::parse("app:1")->floats());
    EXPECT_FALSE(ImageReference::parse("app@" + sha)->floats());
    EXPECT_FALSE(ImageReference::parse("app:latest@" + sha)->floats());
}

TEST(ImageReference, RefusesWhatNoRuntimePulls) {
    for (const std::string_view text : {"",
                                        " ",
                                        "App",
                                        "team/App",
                                        "app:",
                                        "app:-x",
                                        "app:.x",
                                        "app:a b",
                                        "app:a:b",
                                        "a//b",
                                        "/a",
                                        "a/",
                                        "-a",
                                        "a-",
                                        "a..b",
                                        "a___b",
                                        "a._b",
                                        "https://r.example/app",
                                        "r.example:port/app",
                                        "r.example:/app",
                                        "r.example:123456/app",
                                        "-r.example/app",
                                        "r..example/app",
                                        ".example/app",
                                        "[::1/app",
                                        "[]/app",
                                        "[::g]/app",
                                        "app@",
                                        "app@sha256",
                                        "app@sha256:abc",
                                        "app@md5:d41d8cd98f00b204e9800998ecf8427e",
                                        "app@sha256:abc@sha256:abc",
                                        "${IMAGE}",
                                        "{{ .image }}",
                                        "app\n",
                                        "\xC3\xA4pp",
                                        "r_x.example/app",
                                        "localhost:",
                                        "app:1/X",
                                        "@",
                                        ":",
                                        "/",
                                        ":1",
                                        "[",
                                        "[]",
                                        "[:"}) {
        refuse(text);
    }
    refuse("app@sha256:" + std::string(64, 'A'));
    refuse(std::string(64, 'a'));
    refuse(std::string_view("app\0", 4));
}

TEST(ImageReference, HoldsTheLengthsOfTheGrammar) {
    check("app:" + std::string(128, 't'), {"", "app", std::string(128, 't'), ""});
    refuse("app:" + std::string(129, 't'));
    check(std::string(255, 'p'), {"", std::string(255, 'p'), "", ""});
    refuse(std::string(256, 'p'));
    for (const char c : {'a', '/', ':', '@', '.', '-', '_', '[', 'A'}) {
        refuse(std::string(1'000'000, c));
    }
}
