// Rules over the OSSA document itself (the value of its member `agent`).
#include "kube/types/image.hpp"
#include "kube/types/quantity.hpp"
#include "kube/types/semver.hpp"
#include "schema/rule_report.hpp"
#include "schema/rules.hpp"

namespace ossa::schema {
namespace {

using json::quoted;
using json::Value;
using kube::CauseType;

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Hints are made only for texts that a person may have typed.
constexpr std::size_t hint_bytes_max = 120;

std::string image_hint(std::string_view text) {
    if (text.empty()) {
        return "leave the member out until there is an image";
    }
    if (text.size() > hint_bytes_max) {
        return {};
    }
    if (text.find("{{") != std::string_view::npos || text.find("${") != std::string_view::npos ||
        text.find("$(") != std::string_view::npos) {
        return "fill in the placeholder before applying";
    }
    std::string better;
    for (const char c : text) {
        better.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
    }
    for (const std::string_view scheme : {"https://", "http://", "docker://", "oci://"}) {
        if (better.starts_with(scheme)) {
            better.erase(0, scheme.size());
        }
    }
    const std::size_t from = better.find_first_not_of(" \t\r\n");
    const std::size_t to = better.find_last_not_of(" \t\r\n");
    better = from == std::string::npos ? "" : better.substr(from, to - from + 1);
    if (better != text && kube::ImageReference::parse(better)) {
        return "write " + quoted(better);
    }
    return {};
}

// "v1.2", ">=1.0.0", "1" -> the semver that was probably meant.
std::string version_hint(std::string_view text) {
    if (text.size() > hint_bytes_max) {
        return {};
    }
    const std::size_t from = text.find_first_not_of(" =<>^~vV");
    if (from == std::string_view::npos) {
        return {};
    }
    std::string better{text.substr(from)};
    while (!better.empty() && better.back() == ' ') {
        better.pop_back();
    }
    for (int i = 0; i < 3; ++i) {
        if (kube::Semver::parse(better)) {
            return "write " + quoted(better);
        }
        if (better.ends_with(".x") || better.ends_with(".*")) {
            better.resize(better.size() - 2);
        }
        better.append(".0");
    }
    return {};
}

void check_positive(Value amount, const Where& at, Report& report) {
    const auto text = amount.as_string();
    if (!text) {
        return;
    }
    const auto quantity = kube::Quantity::parse(*text);
    if (!quantity) {
        report.add(CauseType::invalid, "agent/quantity", at.pointer(), amount, quantity.error(), quantity_hint(*text));
    } else if (quantity->sign() <= 0) {
        report.add(CauseType::invalid, "agent/quantity", at.pointer(), amount, "must be more than 0");
    }
}

void check_health_check(Value probe, const Where& at, Report& report) {
    const auto [type, endpoint, port, command] = pick(probe, "type", "endpoint", "port", "command");
    const std::string_view kind = type.string_or("");
    if (kind == "http") {
        if (!endpoint.exists()) {
            report.missing("agent/health-check", at, "endpoint", "an http probe needs the path that it asks for",
                           R"(for example "/health")");
        } else if (const auto text = endpoint.as_string(); text && !text->starts_with('/')) {
            std::string hint;
            const std::size_t scheme = text->substr(0, hint_bytes_max).find("://");
            if (text->size() <= hint_bytes_max) {
                const std::size_t path = scheme == std::string_view::npos ? 0 : text->find('/', scheme + 3);
                std::string better{path == std::string_view::npos ? "/" : text->substr(path)};
                if (!better.starts_with('/')) {
                    better.insert(0, "/");
                }
                hint = "write " + quoted(better);
            }
            report.add(CauseType::invalid, "agent/health-check", at.pointer({"endpoint"}), endpoint,
                       "must be an absolute path that starts with '/'; the probe always asks the agent's own Pod",
                       hint);
        }
    } else if (kind == "exec") {
        if (!command.exists()) {
            report.missing("agent/health-check", at, "command", "an exec probe needs the command that it runs",
                           R"(for example ["/bin/check"])");
        } else if (command.is_array() && command.empty()) {
            report.add(CauseType::invalid, "agent/health-check", at.pointer({"command"}), command,
                       "must have at least one item for an exec probe");
        }
    }
    if (port.is_integer()) {
        const auto number = port.as_int64();
        if (!number || *number < 1 || *number > 65535) {
            report.add(CauseType::invalid, "agent/health-check", at.pointer({"port"}), port,
                       "must be between 1 and 65535");
        }
    }
}

void check_runtime(Value runtime, const Where& at, const RuleOptions& options, Report& report) {
    const auto [type, image, resources, probe] = pick(runtime, "type", "image", "resources", "health_check");
    if (const auto text = image.as_string()) {
        if (const auto reference = kube::ImageReference::parse(*text); !reference) {
            report.add(CauseType::invalid, "agent/image", at.pointer({"image"}), image, reference.error(),
                       image_hint(*text));
        }
    } else if (options.require_image && !image.exists() && runs_here(type)) {
        report.missing("agent/image-required", at, "image", "runtime types k8s and docker need an image here",
                       R"(for example "registry.example/team/app:1.2.0")");
    }
    if (resources.is_object()) {
        const Where resources_at{at, "resources"};
        const auto [cpu, memory] = pick(resources, "cpu", "memory");
        check_positive(cpu, Where{resources_at, "cpu"}, report);
        check_positive(memory, Where{resources_at, "memory"}, report);
    }
    if (probe.is_object()) {
        check_health_check(probe, Where{at, "health_check"}, report);
    }
}

// The `name` of each item, which must not repeat.
void check_names(Value items, const Where& at, std::string_view rule, Report& report) {
    NameSet names;
    std::size_t index = 0;
    for (const Value item : items.elements()) {
        if (const Value name = item.at("name"); name.is_string()) {
            names.add(name, 0, index);
        }
        ++index;
    }
    names.each_repeat([&](const NameSet::Entry& repeat, const NameSet::Entry& first) {
        if (!report.full()) {
            const Where item_at{at, std::size_t{repeat.index}};
            report.add(CauseType::duplicate, rule, item_at.pointer({"name"}), names.value_of(repeat),
                       "is already the name of item " + std::to_string(first.index));
        }
    });
}

void check_version(Value version, const Where& at, Report& report) {
    if (const auto text = version.as_string(); text && !kube::Semver::parse(*text)) {
        report.add(CauseType::invalid, "agent/dependency-version", at.pointer(), version,
                   "must be a semantic version (2.0.0): three numbers, such as 1.2.0", version_hint(*text));
    }
}

void check_dependencies(Value dependencies, std::string_view own_id, const Where& at, Report& report) {
    constexpr std::array<std::string_view, 2> list_names{"required", "optional"};
    const std::array<Value, 2> lists = pick(dependencies, "required", "optional");
    NameSet names;
    for (std::uint32_t list = 0; list < lists.size(); ++list) {
        const Where list_at{at, list_names[list]};
        std::size_t index = 0;
        for (const Value item : lists[list].elements()) {
            const Where item_at{list_at, index};
            const auto [id, min, max] = pick(item, "agent_id", "min_version", "max_version");
            if (const auto text = id.as_string()) {
                names.add(id, list, index);
                if (!own_id.empty() && *text == own_id) {
                    report.add(CauseType::invalid, "agent/self-dependency", item_at.pointer({"agent_id"}), id,
                               "must not be the agent's own id", "take this dependency out");
                }
            }
            check_version(min, Where{item_at, "min_version"}, report);
            check_version(max, Where{item_at, "max_version"}, report);
            if (min.is_string() && max.is_string()) {
                const auto lowest = kube::Semver::parse(min.raw_string());
                const auto highest = kube::Semver::parse(max.raw_string());
                if (lowest && highest && kube::precedence(*highest, *lowest) < 0) {
                    report.add(CauseType::invalid, "agent/dependency-version", item_at.pointer({"max_version"}), max,
                               "must not be below min_version " + json::excerpt(min), "exchange the two");
                }
            }
            ++index;
        }
    }
    names.each_repeat([&](const NameSet::Entry& repeat, const NameSet::Entry& first) {
        if (!report.full()) {
            const Where list_at{at, list_names[repeat.list]};
            const Where item_at{list_at, std::size_t{repeat.index}};
            report.add(CauseType::duplicate, "agent/duplicate-dependency", item_at.pointer({"agent_id"}),
                       names.value_of(repeat),
                       "is already in dependencies." + std::string(list_names[first.list]) + "[" +
                           std::to_string(first.index) + "]");
        }
    });
}

}  // namespace

bool runs_here(Value runtime_type) noexcept {
    const auto type = runtime_type.as_string();
    return type && (*type == "k8s" || *type == "docker");
}

std::string quantity_hint(std::string_view text) {
    const std::size_t from = text.find_first_not_of(' ');
    if (from == std::string_view::npos || text.size() > hint_bytes_max) {
        return R"(for example "500m" or "512Mi")";
    }
    std::size_t end = from;
    while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) {
        ++end;
    }
    const std::string number{text.substr(from, end - from)};
    std::string unit;
    for (const char c : text.substr(end)) {
        if (c != ' ') {
            unit.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
        }
    }
    if (number.empty() || !kube::Quantity::parse(number)) {
        return R"(for example "500m" or "512Mi")";
    }
    struct Unit {
        std::string_view typed, decimal, binary;
    };
    constexpr Unit units[] = {{"k", "k", "Ki"}, {"m", "M", "Mi"}, {"g", "G", "Gi"}, {"t", "T", "Ti"}, {"p", "P", "Pi"}};
    for (const Unit& one : units) {
        if (unit == std::string(one.typed) + "i" || unit == std::string(one.typed) + "ib") {
            return "write " + quoted(number + std::string(one.binary));
        }
        if (unit == one.typed || unit == std::string(one.typed) + "b") {
            return "write " + quoted(number + std::string(one.decimal)) + " or " +
                   quoted(number + std::string(one.binary));
        }
    }
    for (const std::string_view cores : {"", "b", "bytes", "c", "core", "cores", "cpu", "cpus", "vcpu", "vcpus"}) {
        if (unit == cores) {
            return "write " + quoted(number);
        }
    }
    return unit == "milli" || unit == "millicores" || unit == "mcpu" ? "write " + quoted(number + "m")
                                                                     : R"(for example "500m" or "512Mi")";
}

void check_body(Value body, const Where& at, const RuleOptions& options, Report& report) {
    const auto [id, runtime, capabilities, dependencies, bridge] =
        pick(body, "id", "runtime", "capabilities", "dependencies", "bridge");
    if (runtime.is_object()) {
        check_runtime(runtime, Where{at, "runtime"}, options, report);
    }
    if (capabilities.is_array()) {
        check_names(capabilities, Where{at, "capabilities"}, "agent/duplicate-capability", report);
    }
    if (dependencies.is_object()) {
        check_dependencies(dependencies, id.string_or(""), Where{at, "dependencies"}, report);
    }
    if (const Value tools = bridge.at("mcp").at("tools"); tools.is_array()) {
        const Where bridge_at{at, "bridge"};
        const Where mcp_at{bridge_at, "mcp"};
        check_names(tools, Where{mcp_at, "tools"}, "agent/duplicate-tool", report);
    }
}

}  // namespace ossa::schema
