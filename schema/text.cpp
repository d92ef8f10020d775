#include "schema/text.hpp"

#include <algorithm>
#include <array>

#include "base/json.hpp"

namespace ossa::schema {
namespace {

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool counts(char c) {
    return c != '-' && c != '_' && c != ' ' && c != '.';
}

// Lower case without dashes, underscores, spaces and dots.
std::string folded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (counts(c)) {
            out.push_back(lower(c));
        }
    }
    return out;
}

struct Synonym {
    std::string_view folded;  // what people write
    std::string_view value;   // what the schema calls it
};

// Words for enum values that no edit distance finds. Several lines with one word give several guesses.
constexpr Synonym synonyms[] = {
    {"mutualtls", "mtls"},
    {"clientcertificate", "mtls"},
    {"x509", "mtls"},
    {"tls", "mtls"},
    {"bearer", "jwt"},
    {"bearertoken", "jwt"},
    {"token", "jwt"},
    {"token", "api_key"},
    {"oidc", "oauth2"},
    {"openid", "oauth2"},
    {"openidconnect", "oauth2"},
    {"key", "api_key"},
    {"kubernetes", "k8s"},
    {"kube", "k8s"},
    {"deployment", "k8s"},
    {"container", "docker"},
    {"podman", "docker"},
    {"oci", "docker"},
    {"lambda", "serverless"},
    {"faas", "serverless"},
    {"function", "serverless"},
    {"process", "local"},
    {"https", "http"},
    {"rest", "http"},
    {"ws", "websocket"},
    {"wss", "websocket"},
    {"command", "exec"},
    {"cmd", "exec"},
    {"socket", "tcp"},
    {"conversation", "chat"},
    {"etl", "data_processing"},
    {"datasync", "data_processing"},
    {"security", "compliance"},
    {"observability", "monitoring"},
    {"coding", "development"},
    {"mask", "anonymize"},
    {"redact", "anonymize"},
    {"pseudonymize", "anonymize"},
    {"deny", "prohibit"},
    {"forbid", "prohibit"},
    {"allow", "none"},
    {"ccpa", "gdpr"},
    {"production", "mainnet"},
    {"rolling", "RollingUpdate"},
    {"queuelength", "queueDepth"},
    {"gpu", "gpuUtilization"},
    {"streamablehttp", "StreamableHTTP"},
    {"http", "StreamableHTTP"},
    {"envoy", "envoy-gateway"},
};

unsigned distance_limit(std::size_t length) {
    return static_cast<unsigned>(std::clamp<std::size_t>(length / 3, 1, 4));
}

}  // namespace

unsigned edit_distance(std::string_view a, std::string_view b, unsigned limit) noexcept {
    if (a.size() > guess_bytes_max || b.size() > guess_bytes_max) {
        return limit + 1;
    }
    const std::size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
    if (gap > limit) {
        return limit + 1;
    }
    using Row = std::array<unsigned, guess_bytes_max + 1>;
    std::array<Row, 3> rows;
    for (std::size_t j = 0; j <= b.size(); ++j) {
        rows[0][j] = static_cast<unsigned>(j);
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        Row& now = rows[i % 3];
        const Row& above = rows[(i + 2) % 3];
        const Row& two_above = rows[(i + 1) % 3];
        now[0] = static_cast<unsigned>(i);
        unsigned least = now[0];
        for (std::size_t j = 1; j <= b.size(); ++j) {
            unsigned cost = above[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
            cost = std::min({cost, above[j] + 1, now[j - 1] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                cost = std::min(cost, two_above[j - 2] + 1);
            }
            now[j] = cost;
            least = std::min(least, cost);
        }
        if (least > limit) {
            return limit + 1;
        }
    }
    return std::min(rows[a.size() % 3][b.size()], limit + 1);
}

std::optional<std::string_view> nearest_name(std::string_view name, std::span<const std::string_view> known) {
    if (name.empty() || name.size() > guess_bytes_max) {
        return std::nullopt;
    }
    const std::string wanted = folded(name);
    std::optional<std::string_view> best;
    unsigned best_distance = distance_limit(wanted.size()) + 1;
    for (const std::string_view candidate : known) {
        if (candidate.size() > guess_bytes_max) {
            continue;
        }
        const std::string other = folded(candidate);
        if (other == wanted) {
            return candidate;
        }
        const unsigned limit = std::min(best_distance - 1, distance_limit(std::min(wanted.size(), other.size())));
        const unsigned distance = edit_distance(wanted, other, limit);
        if (distance <= limit) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::vector<std::string_view> similar_values(std::string_view value, std::span<const std::string_view> allowed) {
    constexpr std::size_t values_max = 3;
    std::vector<std::string_view> out;
    if (value.empty() || value.size() > guess_bytes_max) {
        return out;
    }
    const std::string wanted = folded(value);
    const auto keep = [&](auto matches) {
        for (const std::string_view candidate : allowed) {
            if (out.size() < values_max && matches(candidate)) {
                out.push_back(candidate);
            }
        }
        return !out.empty();
    };
    if (keep([&](std::string_view candidate) { return folded(candidate) == wanted; })) {
        return out;
    }
    const auto is_synonym = [&](std::string_view candidate) {
        return std::any_of(std::begin(synonyms), std::end(synonyms), [&](const Synonym& synonym) {
            return synonym.folded == wanted && synonym.value == candidate;
        });
    };
    if (keep(is_synonym)) {
        return out;
    }
    if (wanted.size() >= 3 && keep([&](std::string_view candidate) { return folded(candidate).starts_with(wanted); })) {
        return out;
    }
    if (const auto near = nearest_name(value, allowed)) {
        out.push_back(*near);
    }
    return out;
}

std::string did_you_mean(std::string_view value, std::span<const std::string_view> allowed) {
    const std::vector<std::string_view> similar = similar_values(value, allowed);
    std::string out;
    for (std::size_t i = 0; i < similar.size(); ++i) {
        out.append(i == 0 ? "did you mean " : i + 1 == similar.size() ? " or " : ", ");
        json::append_quoted(out, similar[i]);
    }
    return out.empty() ? out : out + "?";
}

}  // namespace ossa::schema
