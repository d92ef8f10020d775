#include "engine/cross.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "kube/types/semver.hpp"

namespace ossa::engine {
namespace {

using json::quoted;
using json::Value;
using kube::CauseType;
using kube::Severity;

void take_body(Value body, const std::string& at, AgentFacts& out) {
    out.id = text_of(body.at("id"));
    out.version = text_of(body.at("version"));
    for (const std::string_view list : {"required", "optional"}) {
        std::size_t index = 0;
        for (const Value entry : body.at("dependencies").at(list).elements()) {
            DependencyFact fact;
            fact.agent_id = text_of(entry.at("agent_id"));
            fact.min_version = text_of(entry.at("min_version"));
            fact.max_version = text_of(entry.at("max_version"));
            fact.pointer = at + "/dependencies/" + std::string{list} + "/" + std::to_string(index++) + "/agent_id";
            fact.required = list == "required";
            if (!fact.agent_id.empty()) {
                out.dependencies.push_back(std::move(fact));
            }
        }
    }
}

class CrossCheck {
  public:
    CrossCheck(const std::vector<AgentFacts>& agents, const std::vector<QuotaFacts>& quotas,
               const std::vector<std::string>& where)
        : agents_(agents), quotas_(quotas), where_(where) {}

    std::vector<CrossFinding> run() {
        for (std::size_t i = 0; i < agents_.size(); ++i) {
            const AgentFacts& agent = agents_[i];
            if (!agent.id.empty()) {
                by_id_[scope(agent)].try_emplace(agent.id, i);
            }
        }
        repeats();
        dependencies();
        cycles();
        totals();
        return std::move(out_);
    }

  private:
    // Bare documents live in no namespace; they are compared among themselves.
    static std::string scope(const AgentFacts& agent) { return agent.bare ? std::string{"\n"} : agent.namespace_; }
    static std::string body_of(const AgentFacts& agent) {
        return agent.pointer + (agent.bare ? "/agent" : "/spec/agent");
    }

    void add(std::size_t source, Severity severity, CauseType cause, std::string rule, std::string pointer,
             std::string found, std::string message, std::string hint = {}) {
        kube::Finding finding;
        finding.severity = severity;
        finding.cause = cause;
        finding.rule = std::move(rule);
        finding.pointer = std::move(pointer);
        finding.found = std::move(found);
        finding.message = std::move(message);
        finding.hint = std::move(hint);
        out_.push_back({source, std::move(finding)});
    }

    void repeats() {
        std::map<std::pair<std::string, std::string>, std::size_t> names;
        for (std::size_t i = 0; i < agents_.size(); ++i) {
            const AgentFacts& agent = agents_[i];
            if (!agent.bare && !agent.name.empty()) {
                const auto [first, fresh] = names.try_emplace({agent.namespace_, agent.name}, i);
                if (!fresh) {
                    add(agent.source, Severity::warning, CauseType::duplicate, "agent/duplicate-name",
                        agent.pointer + "/metadata/name", quoted(agent.name),
                        "the Agent of this name in namespace " + agent.namespace_ + " is also in " +
                            where_[agents_[first->second].source] + "; what is applied last stays");
                    continue;  // the same object twice has the same id, of course
                }
            }
            if (agent.id.empty()) {
                continue;
            }
            const std::size_t first = by_id_[scope(agent)][agent.id];
            if (first != i) {
                add(agent.source, agent.bare ? Severity::warning : Severity::error, CauseType::duplicate,
                    "agent/duplicate-id", body_of(agent) + "/id", quoted(agent.id),
                    agent.bare ? "the id is also used in " + where_[agents_[first].source]
                               : "the id is already used in namespace " + agent.namespace_ + " by " +
                                     where_[agents_[first].source]);
            }
        }
    }

    void dependencies() {
        for (const AgentFacts& agent : agents_) {
            const auto& known = by_id_[scope(agent)];
            for (const DependencyFact& dependency : agent.dependencies) {
                if (dependency.agent_id == agent.id) {
                    continue;  // agent/self-dependency says so
                }
                const auto found = known.find(dependency.agent_id);
                if (found == known.end()) {
                    add(agent.source, Severity::warning, CauseType::not_found, "agent/dependency-missing",
                        agent.pointer + dependency.pointer, quoted(dependency.agent_id),
                        "no agent of this id is among the given documents");
                    continue;
                }
                version(agent, dependency, agents_[found->second]);
            }
        }
    }

    void version(const AgentFacts& agent, const DependencyFact& dependency, const AgentFacts& target) {
        const auto have = kube::Semver::parse(target.version);
        const auto lowest = kube::Semver::parse(dependency.min_version);
        const auto highest = kube::Semver::parse(dependency.max_version);
        if (!have) {
            return;
        }
        const bool low = lowest && kube::precedence(*have, *lowest) < 0;
        const bool high = highest && kube::precedence(*have, *highest) > 0;
        if (low || high) {
            add(agent.source, Severity::warning, CauseType::invalid, "agent/dependency-unmet",
                agent.pointer + dependency.pointer, quoted(dependency.agent_id),
                "its version " + target.version + " (" + where_[target.source] + ") is " +
                    (low ? "below min_version " + dependency.min_version
                         : "above max_version " + dependency.max_version));
        }
    }

    // Depth first over the required dependencies, without recursion; each edge back into the path is one cycle.
    void cycles() {
        enum class State : std::uint8_t { fresh, open, done };
        std::vector<State> states(agents_.size(), State::fresh);
        struct Step {
            std::size_t agent;
            std::size_t next = 0;
        };
        for (std::size_t start = 0; start < agents_.size(); ++start) {
            if (states[start] != State::fresh) {
                continue;
            }
            std::vector<Step> path{{start}};
            states[start] = State::open;
            while (!path.empty()) {
                Step& step = path.back();
                const AgentFacts& agent = agents_[step.agent];
                if (step.next == agent.dependencies.size()) {
                    states[step.agent] = State::done;
                    path.pop_back();
                    continue;
                }
                const DependencyFact& dependency = agent.dependencies[step.next++];
                const auto& known = by_id_[scope(agent)];
                const auto target = known.find(dependency.agent_id);
                if (!dependency.required || target == known.end() || target->second == step.agent) {
                    continue;
                }
                if (states[target->second] == State::open) {
                    report_cycle(path, target->second, agent, dependency);
                } else if (states[target->second] == State::fresh) {
                    states[target->second] = State::open;
                    path.push_back({target->second});
                }
            }
        }
    }

    template <class Path>
    void report_cycle(const Path& path, std::size_t back_to, const AgentFacts& agent,
                      const DependencyFact& dependency) {
        std::string shown;
        bool within = false;
        for (const auto& step : path) {
            within = within || step.agent == back_to;
            if (within) {
                shown += agents_[step.agent].id + " -> ";
            }
        }
        add(agent.source, Severity::error, CauseType::invalid, "agent/dependency-cycle",
            agent.pointer + dependency.pointer, quoted(dependency.agent_id),
            "agents that wait for each other: " + shown + agents_[back_to].id,
            "move one of these dependencies to dependencies.optional");
    }

    void totals() {
        std::map<std::string, std::vector<std::size_t>> quotas;
        for (std::size_t i = 0; i < quotas_.size(); ++i) {
            quotas[quotas_[i].namespace_].push_back(i);
        }
        std::vector<Demand> used(quotas_.size());
        for (const AgentFacts& agent : agents_) {
            const auto in_namespace = agent.bare ? quotas.end() : quotas.find(agent.namespace_);
            if (in_namespace == quotas.end()) {
                continue;
            }
            std::optional<std::size_t> quota;
            for (const std::size_t i : in_namespace->second) {
                if (agent.tenant.empty() ? in_namespace->second.size() == 1 : quotas_[i].name == agent.tenant) {
                    quota = i;
                }
            }
            if (!quota) {
                std::string names;
                for (const std::size_t i : in_namespace->second) {
                    names += (names.empty() ? "" : ", ") + quotas_[i].name;
                }
                add(agent.source, Severity::warning, CauseType::not_found, "agent/tenant",
                    agent.pointer + (agent.tenant.empty() ? "/spec" : "/spec/tenantRef"),
                    agent.tenant.empty() ? "" : quoted(agent.tenant),
                    (agent.tenant.empty()
                         ? std::string{"no tenantRef, and there are several TenantQuotas in namespace "}
                         : std::string{"no such TenantQuota is among those given of namespace "}) +
                        agent.namespace_ + ": " + names);
                continue;
            }
            used[*quota] = sum(used[*quota], agent.demand);
            const auto most = quotas_[*quota].replicas_per_agent_max;
            if (most && agent.demand.replicas > *most) {
                add(agent.source, Severity::error, CauseType::forbidden, "tenantquota/replicas-per-agent",
                    body_of(agent), "",
                    "this Agent asks for " + std::to_string(agent.demand.replicas) + " replicas, TenantQuota " +
                        quotas_[*quota].name + " allows maxReplicasPerAgent " + std::to_string(*most));
            }
        }
        for (std::size_t i = 0; i < quotas_.size(); ++i) {
            const QuotaFacts& quota = quotas_[i];
            const auto compare = [&](std::string_view member, std::optional<std::int64_t> limit,
                                     std::int64_t declared) {
                if (limit && declared > *limit) {
                    add(quota.source, Severity::error, CauseType::forbidden, "tenantquota/exceeded",
                        quota.pointer + "/spec/" + std::string{member}, std::to_string(*limit),
                        "the given Agents of this tenant declare " + std::to_string(declared),
                        "raise " + std::string{member} + " or ask for less");
                }
            };
            compare("maxAgents", quota.agents_max, used[i].agents);
            compare("maxGPUs", quota.gpus_max, used[i].gpus);
            compare("maxTotalReplicas", quota.replicas_max, used[i].replicas);
        }
    }

    const std::vector<AgentFacts>& agents_;
    const std::vector<QuotaFacts>& quotas_;
    const std::vector<std::string>& where_;
    std::unordered_map<std::string, std::unordered_map<std::string, std::size_t>> by_id_;
    std::vector<CrossFinding> out_;
};

}  // namespace

AgentFacts agent_facts(Value object, std::string_view pointer, std::string_view namespace_when_absent) {
    AgentFacts out;
    out.pointer = pointer;
    out.name = text_of(object.at("metadata").at("name"));
    out.namespace_ = object.at("metadata").at("namespace").string_or(namespace_when_absent);
    const Value spec = object.at("spec");
    out.tenant = text_of(spec.at("tenantRef"));
    take_body(spec.at("agent"), "/spec/agent", out);
    out.demand = demand_of(spec);
    return out;
}

AgentFacts bare_agent_facts(Value document) {
    AgentFacts out;
    out.bare = true;
    take_body(document.at("agent"), "/agent", out);
    return out;
}

QuotaFacts quota_facts(Value object, std::string_view pointer, std::string_view namespace_when_absent) {
    QuotaFacts out;
    out.pointer = pointer;
    out.name = text_of(object.at("metadata").at("name"));
    out.namespace_ = object.at("metadata").at("namespace").string_or(namespace_when_absent);
    const Value spec = object.at("spec");
    out.agents_max = spec.at("maxAgents").as_int64();
    out.gpus_max = spec.at("maxGPUs").as_int64();
    out.replicas_max = spec.at("maxTotalReplicas").as_int64();
    out.replicas_per_agent_max = spec.at("maxReplicasPerAgent").as_int64();
    return out;
}

std::vector<CrossFinding> cross_check(const std::vector<AgentFacts>& agents, const std::vector<QuotaFacts>& quotas,
                                      const std::vector<std::string>& where) {
    return CrossCheck(agents, quotas, where).run();
}

}  // namespace ossa::engine
