#include "validator/rule_list.hpp"

#include <algorithm>

namespace ossa::validator {
namespace {

constexpr auto error = kube::Severity::error;
constexpr auto warning = kube::Severity::warning;

// About texts, files and several documents; no object has these alone, so the webhook never gives them.
constexpr schema::RuleEntry own[] = {
    {"agent/dependency-cycle", error,
     "Agents that require each other, directly or by way of others, would wait for ever. The message shows the way "
     "round. "
     "Only dependencies.required counts.",
     "move one of them to dependencies.optional"},
    {"agent/dependency-missing", warning,
     "A dependency names an agent id that none of the given documents has. It may be in the cluster all the same.", ""},
    {"agent/dependency-unmet", warning,
     "The agent that a dependency names is among the given documents, but its version lies outside of min_version and "
     "max_version.",
     ""},
    {"agent/duplicate-id", error,
     "Two Agents of one namespace have the same agent.id. For bare OSSA documents, which have no namespace, this is a "
     "warning.",
     "give each agent an id of its own"},
    {"agent/duplicate-name", warning,
     "The same Agent (namespace and name) is given twice. kubectl would apply both, and the later one would stay.", ""},
    {"agent/example", warning,
     "An example of a capability does not match the capability's own input_schema or output_schema. Only "
     "ossa-validator "
     "judges this: the webhook never runs the schemas of users over data.",
     ""},
    {"agent/tenant", warning,
     "The namespace has TenantQuotas among the given documents, but tenantRef names none of them, or is absent while "
     "there "
     "are several. The webhook would deny the Agent if the cluster holds just these.",
     "tenantRef: team-search"},
    {"input/api-version", error,
     "The document is of this operator's group but of a version that it does not serve, or names no apiVersion.",
     "apiVersion: ossa.ai/v1"},
    {"input/kind", error, "The document is of this operator's group but of a kind that it does not have.",
     "kind: Agent"},
    {"input/read", error, "A file could not be opened or read, or is larger than 256 MiB.", ""},
    {"tenantquota/exceeded", error,
     "The given Agents of a tenant declare more than its TenantQuota allows. An Agent counts 1 agent, "
     "scaling.maxReplicas or "
     "else agent.runtime.replicas replicas (1 when absent), and as many GPUs as each replica has; types that run "
     "elsewhere "
     "count no replicas.",
     "raise the limit, or ask for less"},
    {"tenantquota/replicas-per-agent", error, "One Agent asks for more replicas than maxReplicasPerAgent allows.", ""},
    {"yaml/alias", error,
     "An alias without its anchor, an anchor that contains itself, or so many aliases that kubectl refuses the "
     "document.",
     ""},
    {"yaml/boolean-key", warning,
     "An unquoted key such as y, n, on or no. kubectl reads YAML 1.1, where these are booleans, so the key becomes "
     "\"true\" or \"false\".",
     "\"on\": …"},
    {"yaml/boolean-word", warning,
     "An unquoted yes, no, on, off, y or n. kubectl reads it as a boolean (YAML 1.1), other tools as a string (YAML "
     "1.2).",
     "write true or false, or put the word in quotes"},
    {"yaml/depth", error, "Mappings and lists are nested deeper than 250 levels; the webhook refuses that as well.",
     ""},
    {"yaml/duplicate-key", error,
     "A key stands twice in one mapping. kubectl silently takes the last one, so that what is checked is not what was "
     "written.",
     "remove one of the two"},
    {"yaml/encoding", error, "The file is not UTF-8, or has control characters.", ""},
    {"yaml/ignored-document", error,
     "A document that ends with ... is followed by another one without a line ---. kubectl never looks at it.",
     "put a line --- between the documents"},
    {"yaml/key", error, "A key that is no text: a mapping, a list or null. An unrendered template often looks so.",
     "render the template first: helm template . | ossa-validator -"},
    {"yaml/merge", error, "A merge key << needs a mapping, or a list of mappings.", "<<: *defaults"},
    {"yaml/merge-order", warning,
     "A merge key stands behind a key that it changes. kubectl lets the later one win; the YAML rules say that "
     "explicit keys "
     "win.",
     "put the << line first"},
    {"yaml/not-finite", error, "JSON has no .inf and .nan, so kubectl refuses the document.", ""},
    {"yaml/number", error, "A JSON number beyond the range of a double.", ""},
    {"yaml/odd-number", warning,
     "A number in a form that other tools read in another way: 010 is 8 for kubectl and 10 elsewhere, 1_000 is a "
     "string "
     "elsewhere.",
     "write the plain decimal number, or put the text in quotes"},
    {"yaml/separator", error, "A line that begins with --- may hold nothing else but a comment: kubectl splits there.",
     ""},
    {"yaml/size", error, "The document is larger than 7 MiB, or has more than a million values, aliases written out.",
     ""},
    {"yaml/syntax", error, "The text is neither YAML nor JSON.", ""},
    {"yaml/tag", error, "A tag such as !!int whose value is none.", ""},
};

}  // namespace

const std::vector<schema::RuleEntry>& all_rules() {
    static const std::vector<schema::RuleEntry> rules = [] {
        std::vector<schema::RuleEntry> all(std::begin(own), std::end(own));
        for (const schema::RuleEntry& entry : schema::rule_catalog()) {
            all.push_back(entry);
        }
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
        return all;
    }();
    return rules;
}

const schema::RuleEntry* rule_of(std::string_view id) {
    const auto& rules = all_rules();
    const auto at =
        std::lower_bound(rules.begin(), rules.end(), id, [](const auto& a, std::string_view b) { return a.id < b; });
    return at != rules.end() && at->id == id ? &*at : nullptr;
}

}  // namespace ossa::validator
