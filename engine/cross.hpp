// Cross checks: what is wrong between the Agents and TenantQuotas of one set, and with none of them alone.
//
// Pure. The set is what was given (files in CI), not what a cluster holds: a dependency that is "not present" may well
// be there in the cluster, so that is a warning. Facts are copied out of the documents, so these may be gone by then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "engine/demand.hpp"
#include "kube/types/finding.hpp"

namespace ossa::engine {

struct DependencyFact {
    std::string agent_id, min_version, max_version;
    std::string pointer;  // of the entry's agent_id
    bool required = false;
};

struct AgentFacts {
    std::size_t source = 0;  // of the caller: which document
    bool bare = false;       // an OSSA document that is no Kubernetes object
    std::string namespace_, name, id, version, tenant;
    std::string pointer;  // before every pointer: "" or "/items/3"
    std::vector<DependencyFact> dependencies;
    Demand demand;
};

struct QuotaFacts {
    std::size_t source = 0;
    std::string namespace_, name, pointer;
    std::optional<std::int64_t> agents_max, gpus_max, replicas_max, replicas_per_agent_max;
};

struct CrossFinding {
    std::size_t source = 0;
    kube::Finding finding;
};

// `pointer` leads to the object within its document. A bare document is given whole.
AgentFacts agent_facts(json::Value object, std::string_view pointer, std::string_view namespace_when_absent);
AgentFacts bare_agent_facts(json::Value document);
QuotaFacts quota_facts(json::Value object, std::string_view pointer, std::string_view namespace_when_absent);

// In the order of the agents and quotas given. `where(source)` names a document in a message ("a.yaml:12").
std::vector<CrossFinding> cross_check(const std::vector<AgentFacts>& agents, const std::vector<QuotaFacts>& quotas,
                                      const std::vector<std::string>& where);

}  // namespace ossa::engine
