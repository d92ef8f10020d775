// ImageReference: "registry.example:5000/team/app:1.2@sha256:…", split but not copied.
//
//   reference = name [":" tag] ["@" digest];  name = [host [":" port] "/"] component *("/" component)
// The first part is a host when it holds '.' or ':', is "localhost", or has an upper-case letter and more parts follow
// (the reading of the container runtimes: distribution/reference, ParseNormalizedNamed). Digests are those the runtimes
// verify: sha256, sha384, sha512 in lower-case hexadecimal. Linear, without allocation.
#pragma once

#include <string_view>
#include <tl/expected.hpp>

namespace ossa::kube {

// Views into the parsed text, which must outlive it.
struct ImageReference {
    std::string_view host;    // with its port; "" when the default registry is meant
    std::string_view path;    // "team/app"
    std::string_view tag;     // "" when there is none
    std::string_view digest;  // "sha256:…", "" when there is none

    // True when another image may run under the same reference tomorrow by habit: no digest, and no tag or `latest`.
    bool floats() const noexcept { return digest.empty() && (tag.empty() || tag == "latest"); }

    // The error says what is wrong: "must …".
    static tl::expected<ImageReference, std::string_view> parse(std::string_view text) noexcept;
};

}  // namespace ossa::kube
