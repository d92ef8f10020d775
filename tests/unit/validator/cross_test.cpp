#include "engine/cross.hpp"

#include <gtest/gtest.h>

namespace ossa::engine {
namespace {

AgentFacts agent(std::string id, std::vector<std::string> needs = {}, std::string space = "team") {
    AgentFacts facts;
    facts.id = facts.name = std::move(id);
    facts.version = "1.0.0";
    facts.namespace_ = std::move(space);
    for (std::string& need : needs) {
        facts.dependencies.push_back({std::move(need), "", "", "/d", true});
    }
    facts.demand = {.agents = 1, .replicas = 2, .gpus = 0};
    return facts;
}

// "rule@source ..." of the findings.
std::string check(std::vector<AgentFacts> agents, std::vector<QuotaFacts> quotas = {}) {
    std::vector<std::string> where;
    for (std::size_t i = 0; i < agents.size(); ++i) {
        agents[i].source = i;
        where.push_back("doc" + std::to_string(i));
    }
    for (QuotaFacts& quota : quotas) {
        quota.source = where.size();
        where.push_back("quota");
    }
    std::string out;
    for (const CrossFinding& found : cross_check(agents, quotas, where)) {
        out += found.finding.rule + "@" + std::to_string(found.source) + " ";
    }
    return out;
}

TEST(Cross, AnIdMayBeUsedOncePerNamespace) {
    AgentFacts other = agent("a");
    other.name = "other";
    EXPECT_EQ(check({agent("a"), other}), "agent/duplicate-id@1 ");
    EXPECT_EQ(check({agent("a"), agent("a", {}, "elsewhere")}), "");
    EXPECT_EQ(check({agent("a"), agent("a")}), "agent/duplicate-name@1 ");
}

TEST(Cross, EachWayRoundIsToldOnce) {
    EXPECT_EQ(check({agent("a", {"b"}), agent("b", {"a"})}), "agent/dependency-cycle@1 ");
    EXPECT_EQ(check({agent("a", {"b", "c"}), agent("b", {"d"}), agent("c", {"d"}), agent("d")}), "");
    EXPECT_EQ(check({agent("a", {"a"})}), "");  // agent/self-dependency is the schema room's
    AgentFacts optional = agent("b", {"a"});
    optional.dependencies[0].required = false;
    EXPECT_EQ(check({agent("a", {"b"}), optional}), "");
}

TEST(Cross, ALongChainNeedsNoStack) {
    std::vector<AgentFacts> chain;
    for (int i = 0; i < 100'000; ++i) {
        chain.push_back(agent("a" + std::to_string(i), {"a" + std::to_string(i + 1)}));
    }
    EXPECT_EQ(check(chain), "agent/dependency-missing@99999 ");
}

TEST(Cross, VersionsAreComparedWithTheAgentAtHand) {
    AgentFacts user = agent("a", {"b"});
    user.dependencies[0].min_version = "2.0.0";
    EXPECT_EQ(check({user, agent("b")}), "agent/dependency-unmet@0 ");
    user.dependencies[0].min_version = "1.0.0-rc.1";
    EXPECT_EQ(check({user, agent("b")}), "");
}

TEST(Cross, WhatATenantDeclaresIsAddedUp) {
    QuotaFacts quota;
    quota.name = "q";
    quota.namespace_ = "team";
    quota.replicas_max = 4;
    EXPECT_EQ(check({agent("a"), agent("b")}, {quota}), "");
    EXPECT_EQ(check({agent("a"), agent("b"), agent("c")}, {quota}), "tenantquota/exceeded@3 ");
    EXPECT_EQ(check({agent("a"), agent("b"), agent("c", {}, "other")}, {quota}), "");
    quota.replicas_per_agent_max = 1;
    EXPECT_EQ(check({agent("a")}, {quota}), "tenantquota/replicas-per-agent@0 ");
    QuotaFacts second = quota;
    second.name = "r";
    EXPECT_EQ(check({agent("a")}, {quota, second}), "agent/tenant@0 ");
}

}  // namespace
}  // namespace ossa::engine
