// What is worth a warning in an Agent. The contract is in rules.hpp.
#include <algorithm>

#include "kube/types/image.hpp"
#include "kube/types/quantity.hpp"
#include "schema/plain_schema.hpp"
#include "schema/rule_report.hpp"
#include "schema/rules.hpp"

namespace ossa::schema {
namespace {

using json::Value;
using kube::CauseType;
using kube::Severity;

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}
constexpr bool is_alnum(char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
}

bool same(std::string_view text, std::string_view lower_case) noexcept {
    return text.size() == lower_case.size() &&
           std::equal(text.begin(), text.end(), lower_case.begin(), [](char a, char b) { return lower(a) == b; });
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::string_view (&words)[N]) noexcept {
    return std::any_of(std::begin(words), std::end(words), [&](std::string_view one) { return same(word, one); });
}

// The next word of a name, words being parted by other characters or by a change to upper case: botToken, BOT_TOKEN.
std::string_view next_word(std::string_view& name) noexcept {
    while (!name.empty() && !is_alnum(name.front())) {
        name.remove_prefix(1);
    }
    std::size_t end = 0;
    while (end < name.size() && is_alnum(name[end]) && (end == 0 || !is_upper(name[end]) || is_upper(name[end - 1]))) {
        ++end;
    }
    const std::string_view word = name.substr(0, end);
    name.remove_prefix(end);
    return word;
}

// Cheap and never wrong when it says no: each word that looks_secret looks for begins with one of these.
bool may_look_secret(std::string_view name) noexcept {
    for (std::size_t i = 0; i + 2 < name.size(); ++i) {
        const char a = lower(name[i]);
        if (a != 'p' && a != 's' && a != 't' && a != 'k' && a != 'c') {
            continue;
        }
        const char b = lower(name[i + 1]);
        const char c = lower(name[i + 2]);
        if ((a == 'p' && ((b == 'a' && c == 's') || (b == 'w' && c == 'd'))) || (a == 's' && b == 'e' && c == 'c') ||
            (a == 't' && b == 'o' && c == 'k') || (a == 'k' && b == 'e' && c == 'y') ||
            (a == 'c' && b == 'r' && c == 'e')) {
            return true;
        }
    }
    return false;
}

// A name under which people keep secrets: API_KEY, dbPassword, botToken; not MAX_TOKENS, TOKEN_URL, SECRET_NAME,
// TOKEN_FILE.
bool looks_secret(std::string_view name) noexcept {
    constexpr std::string_view alone[] = {"password", "passwd", "passphrase", "pwd",        "secret",
                                          "token",    "apikey", "credential", "credentials"};
    constexpr std::string_view before_key[] = {"api",     "access", "private", "signing", "encryption",
                                               "account", "auth",   "master",  "ssh",     "subscription"};
    constexpr std::string_view ends[] = {"password", "passwd", "secret", "token", "apikey"};
    constexpr std::string_view harmless_first[] = {"max", "min",   "use",     "enable", "require",
                                                   "has", "allow", "disable", "num"};
    constexpr std::string_view harmless_last[] = {
        "file",     "path",   "dir",     "name",       "names",     "ref",    "url",      "uri",
        "endpoint", "ttl",    "limit",   "limits",     "length",    "size",   "count",    "type",
        "enabled",  "expiry", "expires", "expiration", "timeout",   "issuer", "audience", "id",
        "header",   "field",  "budget",  "version",    "algorithm", "mode",   "max",      "min"};
    if (!may_look_secret(name)) {
        return false;
    }
    bool found = false;
    std::string_view before;
    std::string_view word;
    for (bool first = true; !(word = next_word(name)).empty(); first = false) {
        if (first && is_one_of(word, harmless_first)) {
            return false;
        }
        const bool is_key = (same(word, "key") || same(word, "keys")) && is_one_of(before, before_key);
        const bool is_compound = std::any_of(std::begin(ends), std::end(ends), [&](std::string_view end) {
            return word.size() > end.size() && same(word.substr(word.size() - end.size()), end);
        });
        found = found || is_key || is_compound || is_one_of(word, alone);
        before = word;
    }
    return found && !is_one_of(before, harmless_last);
}

// Not the secret itself: nothing, a switch, or something that is filled in or looked up elsewhere.
bool is_placeholder(std::string_view value) noexcept {
    return value.empty() || value == "true" || value == "false" || (value.starts_with("${") && value.ends_with('}')) ||
           (value.starts_with("$(") && value.ends_with(')')) || (value.starts_with('<') && value.ends_with('>')) ||
           value.find("{{") != std::string_view::npos;
}

bool is_literal(Value value) noexcept {
    return value.is_string() && !is_placeholder(value.raw_string());
}

// The value is never shown.
void warn_secret(std::string pointer, std::string_view hint, Report& report) {
    report.add(CauseType::invalid, "agent/secret-literal", std::move(pointer), Value{},
               "looks like a secret in plain text, readable by everyone who may read this object", hint);
}

void warn_secrets(Value body, const Where& at, Report& report) {
    const auto [integration, bridge] = pick(body, "integration", "bridge");
    if (const Value config = integration.at("auth").at("config"); config.is_object()) {
        for (const json::Member member : config.members()) {
            if (looks_secret(member.name) && is_literal(member.value)) {
                warn_secret(at.pointer({"integration", "auth", "config", member.name}),
                            "keep it in a Secret and name that one here", report);
            }
        }
    }
    if (const Value platforms = bridge.at("aiflow").at("social_platforms"); platforms.is_object()) {
        for (const json::Member platform : platforms.members()) {
            if (is_literal(platform.value.at("bot_token"))) {
                warn_secret(at.pointer({"bridge", "aiflow", "social_platforms", platform.name, "bot_token"}),
                            "keep it in a Secret and hand it to the agent by workload.env[].valueFrom.secretKeyRef",
                            report);
            }
        }
    }
}

void warn_env(Value env, const Where& at, Report& report) {
    std::size_t index = 0;
    for (const Value item : env.elements()) {
        const auto [name, value] = pick(item, "name", "value");
        if (name.is_string() && looks_secret(name.raw_string()) && is_literal(value)) {
            const Where item_at{at, index};
            warn_secret(item_at.pointer({"value"}), "use valueFrom.secretKeyRef", report);
        }
        ++index;
    }
}

// Cheap and never wrong when it says no: only then is the reference parsed again.
bool may_float(std::string_view image) noexcept {
    const std::size_t end = image.find_last_of("/:@");
    return end == std::string_view::npos || image[end] == '/' || image.ends_with(":latest");
}

void warn_runtime(Value runtime, const Where& at, bool require_image, Report& report) {
    const auto [type, image, resources] = pick(runtime, "type", "image", "resources");
    if (!image.exists() && !require_image && runs_here(type)) {
        report.missing("agent/image-missing", at, "image", "nothing will run: the Agent is stored, but names no image");
    }
    if (const auto text = image.as_string()) {
        const auto reference =
            may_float(*text) ? kube::ImageReference::parse(*text) : tl::make_unexpected(std::string_view{});
        if (reference && reference->floats()) {
            report.add(CauseType::invalid, "agent/image-latest", at.pointer({"image"}), image,
                       reference->tag.empty() ? "has no tag, so what runs may change without notice"
                                              : "has the tag latest, so what runs may change without notice",
                       "name a version or a digest");
        }
    }
    if (const Value memory = resources.at("memory"); memory.is_string()) {
        if (const auto bytes = kube::Quantity::parse(memory.raw_string()); bytes && bytes->has_fraction()) {
            report.add(CauseType::invalid, "agent/memory-unit", at.pointer({"resources", "memory"}), memory,
                       "is a fraction of a byte: m means a thousandth", quantity_hint(memory.raw_string()));
        }
    }
}

void warn_body(Value body, const Where& at, bool require_image, Report& report) {
    warn_secrets(body, at, report);
    if (const Value runtime = body.at("runtime"); runtime.is_object()) {
        warn_runtime(runtime, Where{at, "runtime"}, require_image, report);
    }
}

}  // namespace

void warn_agent(Value object, const RuleOptions& options, kube::Findings& out) {
    Report report{out, Severity::warning, options.findings_max};
    const Where at{options.base_pointer};
    const Where spec_at{at, "spec"};
    const auto [body, workload] = pick(object.at("spec"), "agent", "workload");
    if (workload.is_object()) {
        const Where workload_at{spec_at, "workload"};
        warn_env(workload.at("env"), Where{workload_at, "env"}, report);
    }
    warn_body(body, Where{spec_at, "agent"}, options.require_image, report);
}

void warn_agent_body(Value body, std::string_view pointer, const RuleOptions& options, kube::Findings& out) {
    Report report{out, Severity::warning, options.findings_max};
    warn_body(body, Where{pointer}, options.require_image, report);
}

void warn_unknown(const std::vector<UnknownMember>& unknown, kube::Findings& out) {
    Report report{out, Severity::warning, RuleOptions{}.findings_max};
    for (const UnknownMember& member : unknown) {
        if (member.pointer.find("/x-") != std::string::npos) {
            continue;
        }
        report.add(CauseType::not_supported, "agent/unknown-field", member.pointer, Value{},
                   "is not known and is ignored",
                   member.nearest.empty() ? std::string{} : "did you mean " + kube::field_path(member.nearest) + "?");
    }
}

void warn_inline_schemas(Value body, std::string_view pointer, const Plan& metaschema, std::uint64_t steps_max,
                         kube::Findings& out) {
    Report report{out, Severity::warning, RuleOptions{}.findings_max};
    const Where at{pointer};
    const Where capabilities_at{at, "capabilities"};
    RunResult result;
    std::uint64_t steps_left = steps_max;
    std::size_t index = 0;
    for (const Value capability : body.at("capabilities").elements()) {
        const Where capability_at{capabilities_at, index++};
        const auto [input, output] = pick(capability, "input_schema", "output_schema");
        for (const auto& [name, schema] : {std::pair{"input_schema", input}, std::pair{"output_schema", output}}) {
            if (!schema.is_object() || is_plain_schema(schema)) {
                continue;
            }
            result.clear();
            if (steps_left > 0) {
                metaschema.run(schema, {.base_pointer = {}, .errors_max = 1, .steps_max = steps_left}, result);
            }
            if (steps_left == 0 || result.out_of_steps) {
                report.add(CauseType::invalid, "agent/inline-schema-not-checked", capability_at.pointer({name}),
                           Value{},
                           "was not checked, nor any inline schema behind it: they are too large for one request",
                           "run ossa-validator, or refer to the schema by its URL");
                return;
            }
            steps_left -= std::min(steps_left, result.steps);
            if (!result.errors.empty()) {
                report.add(CauseType::invalid, "agent/inline-schema", capability_at.pointer({name}), Value{},
                           "is no valid JSON Schema (draft-07): " + kube::to_line(result.errors.front()));
            }
        }
    }
}

}  // namespace ossa::schema
