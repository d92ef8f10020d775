#include "schema/crd.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/bug.hpp"
#include "base/json.hpp"
#include "schema/schemas.hpp"

namespace ossa::schema {
namespace {

struct Column {
    std::string_view name, type, path, description;
};

struct Scale {
    std::string_view spec_replicas, status_replicas, selector;
};

struct Definition {
    std::string_view kind, singular, plural, short_name, description;
    std::vector<Column> columns;
    std::optional<Scale> scale;
    json::Value spec, status;
};

Definition definition_of(CrdKind kind) {
    if (kind == CrdKind::agent) {
        return {.kind = "Agent",
                .singular = "agent",
                .plural = "agents",
                .short_name = "agt",
                .description = "An OSSA 1.0 agent, and how it runs on this cluster.",
                .columns =
                    {
                        {"Role", "string", ".spec.agent.role", "What the agent mainly does"},
                        {"Version", "string", ".spec.agent.version", "Version of the agent"},
                        {"Phase", "string", ".status.phase", "Where the agent is in its life"},
                        {"Ready", "string", ".status.ready", "Ready and wanted Pods"},
                        {"Image", "string", ".spec.agent.runtime.image", "Image that is asked for"},
                        {"Tenant", "string", ".spec.tenantRef", "TenantQuota that is charged"},
                        {"MCP", "string", R"(.status.conditions[?(@.type=="MCPRegistered")].status)",
                         "Whether the agent is registered as an MCP server"},
                        {"Age", "date", ".metadata.creationTimestamp", "Time since creation"},
                    },
                .scale = Scale{".spec.agent.runtime.replicas", ".status.replicas", ".status.selector"},
                .spec = agent_spec_schema(),
                .status = agent_status_schema()};
    }
    return {.kind = "TenantQuota",
            .singular = "tenantquota",
            .plural = "tenantquotas",
            .short_name = "tq",
            .description = "Limits for the agents of one tenant.",
            .columns =
                {
                    {"Agents", "integer", ".status.usedAgents", "Agents in use"},
                    {"Max-Agents", "integer", ".spec.maxAgents", "Most agents"},
                    {"Replicas", "integer", ".status.usedTotalReplicas", "Replicas in use"},
                    {"Max-Replicas", "integer", ".spec.maxTotalReplicas", "Most replicas"},
                    {"GPUs", "integer", ".status.usedGPUs", "GPUs in use"},
                    {"Max-GPUs", "integer", ".spec.maxGPUs", "Most GPUs"},
                    {"Age", "date", ".metadata.creationTimestamp", "Time since creation"},
                },
            .scale = std::nullopt,
            .spec = tenant_quota_spec_schema(),
            .status = tenant_quota_status_schema()};
}

// Block YAML, two spaces a level. Text values are always quoted: a JSON string is a YAML string of the same meaning.
class Writer {
  public:
    void raw(std::string_view text) { out_ += text; }
    void open(unsigned level, std::string_view key) { begin(level, key) += ":\n"; }
    void word(unsigned level, std::string_view key, std::string_view value) {
        ((begin(level, key) += ": ") += value) += '\n';
    }
    void text(unsigned level, std::string_view key, std::string_view value) {
        begin(level, key) += ": ";
        json::append_quoted(out_, value);
        out_ += '\n';
    }
    std::string take() { return std::move(out_); }

  private:
    std::string& begin(unsigned level, std::string_view key) { return out_.append(level * std::size_t{2}, ' ') += key; }
    std::string out_;
};

bool plain_key(std::string_view key) {
    return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    });
}

void write_schema(Writer& out, unsigned level, json::Value schema, std::string_view required_member = {});

void keep_unknown(Writer& out, unsigned level) {
    out.word(level, "x-kubernetes-preserve-unknown-fields", "true");
}

bool untyped(json::Value schema) {
    return schema.at("x-ossa-untyped").bool_or(false) || schema.at("oneOf").exists() || !schema.at("type").exists();
}

void write_object(Writer& out, unsigned level, json::Value schema, std::string_view required_member) {
    out.word(level, "type", "object");
    if (!required_member.empty()) {
        out.open(level, "required");
        out.raw(std::string(level * std::size_t{2}, ' ') + "- " + std::string(required_member) + "\n");
    }
    const json::Value properties = schema.at("properties");
    if (properties.exists()) {
        out.open(level, "properties");
        for (const auto [name, member] : properties.members()) {
            OSSA_BUG_IF(!plain_key(name), "a member of our schemas has a name that YAML would want quoted");
            out.open(level + 1, name);
            write_schema(out, level + 2, member);
        }
    }
    const json::Value others = schema.at("additionalProperties");
    if (others.is_object()) {
        OSSA_BUG_IF(properties.exists(), "a structural schema has properties or additionalProperties, not both");
        out.open(level, "additionalProperties");
        write_schema(out, level + 1, others);
    } else if (others.bool_or(true)) {
        keep_unknown(out, level);
    }
}

void write_array(Writer& out, unsigned level, json::Value schema) {
    out.word(level, "type", "array");
    const std::string_view key = schema.at("x-ossa-map-list-key").string_or("");
    if (key.empty()) {
        out.word(level, "x-kubernetes-list-type", "atomic");
    } else {
        out.word(level, "x-kubernetes-list-type", "map");
        out.open(level, "x-kubernetes-list-map-keys");
        out.raw(std::string(level * std::size_t{2}, ' ') + "- " + std::string(key) + "\n");
    }
    const json::Value items = schema.at("items");
    OSSA_BUG_IF(!items.is_object(), "a list in our schemas says nothing about its items");
    out.open(level, "items");
    write_schema(out, level + 1, items, key);
}

void write_schema(Writer& out, unsigned level, json::Value schema, std::string_view required_member) {
    if (const auto description = schema.at("description").as_string()) {
        out.text(level, "description", *description);
    }
    if (untyped(schema)) {
        keep_unknown(out, level);
        return;
    }
    const json::Value type = schema.at("type");
    if (type.is_array()) {
        OSSA_BUG_IF(json::to_text(type) != R"(["integer","string"])", "a list of types that no structural schema has");
        out.word(level, "x-kubernetes-int-or-string", "true");
        return;
    }
    const std::string_view name = type.string_or("");
    if (name == "object") {
        write_object(out, level, schema, required_member);
    } else if (name == "array") {
        write_array(out, level, schema);
    } else {
        OSSA_BUG_IF(name != "string" && name != "boolean" && name != "integer" && name != "number",
                    "a type that no structural schema has");
        out.word(level, "type", name);
    }
}

void write_columns(Writer& out, const std::vector<Column>& columns) {
    out.open(2, "additionalPrinterColumns");
    for (const Column& column : columns) {
        out.word(2, "- name", column.name);
        out.word(3, "type", column.type);
        out.text(3, "jsonPath", column.path);
        out.text(3, "description", column.description);
    }
}

void write_version(Writer& out, const Definition& of) {
    out.raw("  versions:\n  - name: v1\n    served: true\n    storage: true\n");
    write_columns(out, of.columns);
    out.open(2, "subresources");
    out.word(3, "status", "{}");
    if (of.scale) {
        out.open(3, "scale");
        out.word(4, "specReplicasPath", of.scale->spec_replicas);
        out.word(4, "statusReplicasPath", of.scale->status_replicas);
        out.word(4, "labelSelectorPath", of.scale->selector);
    }
    out.open(2, "schema");
    out.open(3, "openAPIV3Schema");
    out.text(4, "description", of.description);
    out.word(4, "type", "object");
    out.open(4, "properties");
    out.open(5, "apiVersion");
    out.text(6, "description", "API group and version of this object.");
    out.word(6, "type", "string");
    out.open(5, "kind");
    out.text(6, "description", "Kind of this object.");
    out.word(6, "type", "string");
    out.open(5, "metadata");
    out.word(6, "type", "object");
    out.open(5, "spec");
    write_schema(out, 6, of.spec);
    out.open(5, "status");
    write_schema(out, 6, of.status);
}

}  // namespace

std::string crd_yaml(CrdKind kind) {
    const Definition of = definition_of(kind);
    Writer out;
    out.raw("# Made by ossa-crdgen from schema/*.json; change those and run it again.\n");
    out.word(0, "apiVersion", "apiextensions.k8s.io/v1");
    out.word(0, "kind", "CustomResourceDefinition");
    out.open(0, "metadata");
    out.word(1, "name", std::string(of.plural) + ".ossa.ai");
    out.open(1, "labels");
    out.word(2, "app.kubernetes.io/part-of", "ossa");
    out.open(0, "spec");
    out.word(1, "group", "ossa.ai");
    out.word(1, "scope", "Namespaced");
    out.open(1, "names");
    out.word(2, "kind", of.kind);
    out.word(2, "listKind", std::string(of.kind) + "List");
    out.word(2, "singular", of.singular);
    out.word(2, "plural", of.plural);
    out.word(2, "shortNames", "[" + std::string(of.short_name) + "]");
    out.word(2, "categories", "[ossa]");
    write_version(out, of);
    return out.take();
}

std::vector<CrdFile> crds() {
    return {{"agents.ossa.ai.yaml", crd_yaml(CrdKind::agent)},
            {"tenantquotas.ossa.ai.yaml", crd_yaml(CrdKind::tenant_quota)}};
}

}  // namespace ossa::schema
