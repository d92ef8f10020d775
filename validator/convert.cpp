#include "validator/convert.hpp"

#include <algorithm>

#include "kube/types/image.hpp"
#include "kube/types/semver.hpp"
#include "validator/yaml_writer.hpp"

namespace ossa::validator {
namespace {

using json::Value;

constexpr std::size_t name_max = 50;  // an Agent's children add suffixes

class Yaml {
  public:
    void open(unsigned indent, std::string_view key) { out_.append(indent, ' ').append(key).append(":\n"); }
    void text(unsigned indent, std::string_view key, std::string_view value) {
        out_.append(indent, ' ').append(key).append(": ").append(yaml_string(value)).append("\n");
    }
    void raw(unsigned indent, std::string_view key, std::string_view value) {
        out_.append(indent, ' ').append(key).append(": ").append(value).append("\n");
    }
    void line(std::string_view text) { out_.append(text).append("\n"); }
    // A value of any kind under a key; nothing when it is absent.
    void value(unsigned indent, std::string_view key, Value value) {
        if (!value.exists()) {
            return;
        }
        out_.append(indent, ' ').append(yaml_string(key)).append(":");
        const bool block = (value.is_object() || value.is_array()) && !value.empty();
        if (block) {
            out_ += '\n';
            append_yaml(out_, value, indent + 2);
        } else {
            out_ += ' ';
            append_yaml_scalar(value);
        }
    }
    std::string take() { return std::move(out_); }

  private:
    void append_yaml_scalar(Value value) {
        if (value.is_string()) {
            out_ += yaml_string(*value.as_string());
        } else {
            json::append(out_, value);
        }
        out_ += '\n';
    }
    std::string out_;
};

void metadata(Yaml& yaml, Value from, std::string_view name, const ConvertOptions& options) {
    yaml.open(0, "metadata");
    yaml.text(2, "name", name);
    const std::string_view own = from.at("namespace").string_or("");
    if (!options.namespace_.empty() || !own.empty()) {
        yaml.text(2, "namespace", options.namespace_.empty() ? own : std::string_view{options.namespace_});
    }
    yaml.value(2, "labels", from.at("labels"));
    constexpr std::string_view last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    bool opened = false;
    for (const json::Member member : from.at("annotations").members()) {
        if (member.name == last_applied) {
            continue;
        }
        if (!opened) {
            yaml.open(2, "annotations");
            opened = true;
        }
        yaml.value(4, member.name, member.value);
    }
}

// A DNS-1035 label of at most 50 characters, as near as can be.
std::string object_name(std::string_view text, std::vector<std::string>& notes) {
    std::string name;
    for (const char c : text) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        const bool good = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') || lower == '-';
        name += good ? lower : '-';
    }
    if (name.empty() || name.front() < 'a' || name.front() > 'z') {
        name.insert(0, "agent-");
    }
    name.resize(std::min(name.size(), name_max));
    while (!name.empty() && name.back() == '-') {
        name.pop_back();
    }
    if (name != text) {
        notes.push_back("metadata.name is " + name + ": " + std::string{text} +
                        " is no DNS-1035 label of at most 50 characters");
    }
    return name;
}

Converted quota(Value object, const ConvertOptions& options) {
    Converted out;
    out.known = true;
    Yaml yaml;
    yaml.line("apiVersion: ossa.ai/v1");
    yaml.line("kind: TenantQuota");
    metadata(yaml, object.at("metadata"), object.at("metadata").at("name").string_or(""), options);
    const Value spec = object.at("spec");
    yaml.line(spec.empty() ? "spec: {}" : "spec:");
    constexpr std::string_view known[] = {"maxAgents", "maxGPUs", "maxTotalReplicas", "maxReplicasPerAgent"};
    for (const json::Member member : spec.members()) {
        if (std::find(std::begin(known), std::end(known), member.name) != std::end(known)) {
            yaml.value(2, member.name, member.value);
        } else {
            out.notes.push_back("not carried over: spec." + std::string{member.name});
        }
    }
    out.yaml = yaml.take();
    return out;
}

std::string version_of(std::string_view image, std::vector<std::string>& notes) {
    const auto reference = kube::ImageReference::parse(image);
    if (reference) {
        std::string_view tag = reference->tag;
        if (tag.starts_with('v')) {
            tag.remove_prefix(1);
        }
        if (kube::Semver::parse(tag)) {
            return std::string{tag};
        }
    }
    notes.emplace_back("agent.version is 0.1.0: the image has no tag that is a semantic version");
    return "0.1.0";
}

Converted agent_deployment(Value object, const ConvertOptions& options) {
    Converted out;
    out.known = true;
    const Value spec = object.at("spec");
    const std::string_view given = object.at("metadata").at("name").string_or("");
    const std::string name = object_name(given, out.notes);
    const std::string_view image = spec.at("image").string_or("");
    Yaml yaml;
    yaml.line("apiVersion: ossa.ai/v1");
    yaml.line("kind: Agent");
    metadata(yaml, object.at("metadata"), name, options);
    yaml.line("spec:");
    yaml.raw(2, "ossaVersion", "\"1.0\"");
    yaml.open(2, "agent");
    yaml.text(4, "id", name);
    yaml.text(4, "name", given);
    yaml.raw(4, "version", "\"" + version_of(image, out.notes) + "\"");
    yaml.text(4, "role", "custom");
    out.notes.emplace_back("agent.role is custom: an AgentDeployment names none");
    yaml.open(4, "runtime");
    yaml.text(6, "type", "k8s");
    yaml.value(6, "image", spec.at("image"));
    yaml.open(4, "capabilities");
    const Value tools = spec.at("mcp").at("tools");
    std::size_t capabilities = 0;
    const auto capability = [&](std::string_view title, std::string_view description) {
        yaml.line("      - name: " + yaml_string(title));
        yaml.text(8, "description", description);
        yaml.raw(8, "input_schema", "{type: object}");
        yaml.raw(8, "output_schema", "{type: object}");
        ++capabilities;
    };
    for (const Value tool : tools.elements()) {
        if (const auto title = tool.as_string()) {
            capability(*title, "MCP tool " + std::string{*title});
        }
    }
    if (capabilities == 0) {
        capability("serve", "Answers requests on its port");
        out.notes.emplace_back(
            "one capability \"serve\" with open schemas: OSSA needs at least one, an AgentDeployment lists none");
    } else {
        out.notes.emplace_back(
            "the capabilities are the MCP tools, with open schemas: write down what they take and give");
    }
    const std::string_view own_tenant = spec.at("tenantRef").string_or("");
    const std::string_view tenant = options.tenant.empty() ? own_tenant : std::string_view{options.tenant};
    if (!tenant.empty()) {
        yaml.text(2, "tenantRef", tenant);
    }
    const bool has_workload = spec.at("port").exists() || spec.at("env").exists() || spec.at("args").exists() ||
                              spec.at("resources").exists();
    if (has_workload) {
        yaml.open(2, "workload");
        for (const std::string_view member : {"port", "args", "env", "resources"}) {
            yaml.value(4, member, spec.at(member));
        }
    }
    if (const Value replicas = spec.at("replicas"); replicas.is_object()) {
        yaml.open(2, "scaling");
        yaml.value(4, "minReplicas", replicas.at("min"));
        yaml.value(4, "maxReplicas", replicas.at("max"));
        yaml.value(4, "metric", replicas.at("metric"));
        yaml.value(4, "target", replicas.at("target"));
    }
    if (const Value rollout = spec.at("rollout"); rollout.is_object() && !rollout.empty()) {
        yaml.open(2, "rollout");
        if (!rollout.at("strategy").exists()) {
            yaml.text(4, "strategy", "Recreate");
        }
        for (const std::string_view member : {"strategy", "steps", "rollback", "abort"}) {
            yaml.value(4, member, rollout.at(member));
        }
    } else {
        yaml.open(2, "rollout");
        yaml.text(4, "strategy", "Recreate");
        out.notes.emplace_back(
            "rollout.strategy is Recreate, the default of AgentDeployments; an Agent's own is RollingUpdate");
    }
    if (const Value mcp = spec.at("mcp"); mcp.is_object() && !mcp.empty()) {
        yaml.open(2, "mcp");
        yaml.value(4, "expose", mcp.at("expose"));
        yaml.value(4, "tools", mcp.at("tools"));
    }
    constexpr std::string_view known[] = {"image", "port",      "tenantRef", "replicas", "rollout",
                                          "mcp",   "resources", "env",       "args"};
    for (const json::Member member : spec.members()) {
        if (std::find(std::begin(known), std::end(known), member.name) == std::end(known)) {
            out.notes.push_back("not carried over: spec." + std::string{member.name});
        }
    }
    out.yaml = yaml.take();
    return out;
}

Converted bare_document(Value document, const ConvertOptions& options) {
    Converted out;
    out.known = true;
    Yaml yaml;
    yaml.line("apiVersion: ossa.ai/v1");
    yaml.line("kind: Agent");
    const Value agent = document.at("agent");
    metadata(yaml, {}, object_name(agent.at("id").string_or(""), out.notes), options);
    yaml.line("spec:");
    yaml.value(2, "ossaVersion", document.at("ossaVersion"));
    yaml.value(2, "agent", agent);
    if (!options.tenant.empty()) {
        yaml.text(2, "tenantRef", options.tenant);
    }
    for (const json::Member member : document.members()) {
        if (member.name != "ossaVersion" && member.name != "agent") {
            out.notes.push_back("not carried over: " + std::string{member.name});
        }
    }
    out.yaml = yaml.take();
    return out;
}

}  // namespace

Converted convert(Value object, const ConvertOptions& options) {
    const std::string_view version = object.at("apiVersion").string_or("");
    const std::string_view kind = object.at("kind").string_or("");
    if (version == "agentrax.io/v1alpha1" && kind == "AgentDeployment") {
        return agent_deployment(object, options);
    }
    if (version == "agentrax.io/v1alpha1" && kind == "TenantQuota") {
        return quota(object, options);
    }
    if (object.at("ossaVersion").exists() && object.at("agent").is_object()) {
        return bare_document(object, options);
    }
    return {};
}

}  // namespace ossa::validator
