// Demand: what an Agent takes from its tenant, and the arithmetic of such amounts.
//
// Pure. Sums and products stop at the largest number instead of wrapping; amounts are never negative.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json.hpp"

namespace ossa::engine {

inline constexpr std::string_view default_gpu_resource = "nvidia.com/gpu";

struct Demand {
    std::int64_t agents = 0;
    std::int64_t replicas = 0;
    std::int64_t gpus = 0;

    bool operator==(const Demand&) const noexcept = default;
    bool is_nothing() const noexcept { return *this == Demand{}; }
};

// The dimensions and the members of a TenantQuota that name them, in the order in which they are told.
struct Dimension {
    std::int64_t Demand::*amount;
    std::string_view limit;  // of spec
    std::string_view used;   // of status
    std::string_view name;   // of a reservation
};
inline constexpr Dimension dimensions[] = {{&Demand::agents, "maxAgents", "usedAgents", "agents"},
                                           {&Demand::replicas, "maxTotalReplicas", "usedTotalReplicas", "replicas"},
                                           {&Demand::gpus, "maxGPUs", "usedGPUs", "gpus"}};

Demand sum(const Demand& a, const Demand& b) noexcept;
// Of each dimension the larger amount.
Demand larger_of(const Demand& a, const Demand& b) noexcept;
// What `after` has more than `before`, dimension by dimension; what falls is 0.
Demand rise(const Demand& before, const Demand& after) noexcept;

// Of a spec that was stored or is about to be: 1 agent; its replicas are scaling.maxReplicas, else
// agent.runtime.replicas; its GPUs are those of one replica times that. Types that never run here take 1 agent only; an
// Agent without an image counts as if it ran. An amount of GPUs that cannot be read counts as none: it is a finding of
// its own, and the API server refuses the Pod.
// scaled_to: as if agent.runtime.replicas were this.
Demand demand_of(json::Value spec, std::string_view gpu_resource = default_gpu_resource,
                 std::optional<std::int64_t> scaled_to = {});

}  // namespace ossa::engine
