#include <re2/re2.h>

#include "conformance/oracle.hpp"
#include "fuzz/targets.hpp"
#include "kube/types/duration.hpp"
#include "kube/types/image.hpp"
#include "kube/types/quantity.hpp"
#include "kube/types/semver.hpp"
#include "schema/plan.hpp"
#include "schema/schemas.hpp"

namespace ossa::fuzz {
namespace {

bool inside(std::string_view part, std::string_view whole) {
    return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_quantity(std::string_view text) {
    const auto amount = kube::Quantity::parse(text);
    const bool has_sign = !text.empty() && (text.front() == '-' || text.front() == '+');
    if (!amount) {
        demand(!amount.error().empty(), "a refusal says why", text);
        return;
    }
    demand(*amount == *amount && !(*amount < *amount), "an amount equals itself", text);
    if (has_sign || text.size() >= 64) {
        return;
    }
    demand(amount->sign() >= 0, "an amount without sign is not negative", text);
    const auto plus = kube::Quantity::parse("+" + std::string(text));
    const auto minus = kube::Quantity::parse("-" + std::string(text));
    demand(plus && *plus == *amount, "a plus changes nothing", text);
    demand(minus && minus->sign() == -amount->sign(), "a minus turns the sign", text);
    demand(*minus <= *amount, "a negative amount is smaller", text);
    std::int64_t whole = 0;
    for (const char c : text) {
        if (c < '0' || c > '9' || text.size() > 17) {
            return;
        }
        whole = whole * 10 + (c - '0');
    }
    demand(*amount == kube::Quantity::of(whole) && !amount->has_fraction(), "digits are what they say", text);
}

void check_semver(std::string_view text) {
    static const re2::RE2 pattern(
        std::string(schema::ossa_schema().pointer("/properties/agent/properties/version/pattern").string_or("")));
    const auto version = kube::Semver::parse(text);
    demand(version.has_value() == re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern),
           "Semver and the schema's pattern agree", text);
    if (version) {
        std::string joined =
            std::string(version->major) + "." + std::string(version->minor) + "." + std::string(version->patch);
        joined += (version->prerelease.empty() ? "" : "-") + std::string(version->prerelease);
        joined += (version->build.empty() ? "" : "+") + std::string(version->build);
        demand(joined == text, "the parts of a version make the whole", text);
        demand(precedence(*version, *version) == std::weak_ordering::equivalent, "a version equals itself", text);
    }
}

void check_image(std::string_view text) {
    const auto image = kube::ImageReference::parse(text);
    if (!image) {
        demand(!image.error().empty(), "a refusal says why", text);
        return;
    }
    for (const std::string_view part : {image->host, image->path, image->tag, image->digest}) {
        demand(inside(part, text), "the parts of an image are views of its text", text);
    }
    std::string joined = std::string(image->host) + (image->host.empty() ? "" : "/") + std::string(image->path);
    joined += (image->tag.empty() ? "" : ":") + std::string(image->tag);
    joined += (image->digest.empty() ? "" : "@") + std::string(image->digest);
    demand(joined == text, "the parts of an image make the whole", text);
}

void check_duration(std::string_view text) {
    const auto span = kube::parse_duration(text);
    if (!span) {
        demand(!span.error().empty(), "a refusal says why", text);
        return;
    }
    if (!text.empty() && text.front() != '-' && text.front() != '+') {
        demand(*span >= span->zero(), "a span without sign is not negative", text);
        const auto minus = kube::parse_duration("-" + std::string(text));
        demand(minus && *minus == -*span, "a minus turns a span round", text);
    }
}

}  // namespace

void kube_values(std::string_view bytes) {
    check_quantity(bytes);
    check_semver(bytes);
    check_image(bytes);
    check_duration(bytes);
}

void uri(std::string_view bytes) {
    demand(schema::is_absolute_uri(bytes) == oracle::is_uri(bytes), "both URI readers agree", bytes);
}

}  // namespace ossa::fuzz
