#include "engine/demand.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "kube/types/quantity.hpp"

namespace ossa::engine {
namespace {

using json::Value;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

std::int64_t product(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t out = 0;
    return __builtin_mul_overflow(a, b, &out) ? most : out;
}

std::int64_t not_negative(std::int64_t value) noexcept {
    return std::max<std::int64_t>(value, 0);
}

template <class Combine>
Demand by_dimension(const Demand& a, const Demand& b, Combine combine) noexcept {
    Demand out;
    for (const Dimension& dimension : dimensions) {
        out.*dimension.amount = combine(a.*dimension.amount, b.*dimension.amount);
    }
    return out;
}

// A count of GPUs as a limit has it: 2, "2" or "2k".
std::optional<std::int64_t> gpus_of(Value resources, std::string_view gpu_resource) {
    for (const std::string_view side : {"limits", "requests"}) {
        const Value amount = resources.at(side).at(gpu_resource);
        if (const auto whole = amount.as_int64()) {
            return not_negative(*whole);
        }
        if (const auto written = amount.as_string()) {
            if (const auto quantity = kube::Quantity::parse(*written)) {
                return not_negative(quantity->units_rounded_up());
            }
            return 0;
        }
    }
    return {};
}

}  // namespace

Demand sum(const Demand& a, const Demand& b) noexcept {
    return by_dimension(a, b, [](std::int64_t x, std::int64_t y) {
        std::int64_t out = 0;
        return __builtin_add_overflow(x, y, &out) ? most : out;
    });
}

Demand larger_of(const Demand& a, const Demand& b) noexcept {
    return by_dimension(a, b, [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
}

Demand rise(const Demand& before, const Demand& after) noexcept {
    return by_dimension(before, after, [](std::int64_t x, std::int64_t y) { return y > x ? y - x : 0; });
}

Demand demand_of(Value spec, std::string_view gpu_resource, std::optional<std::int64_t> scaled_to) {
    const Value runtime = spec.at("agent").at("runtime");
    Demand demand{.agents = 1};
    const std::string_view type = runtime.at("type").string_or("k8s");
    if (type != "k8s" && type != "docker") {
        return demand;
    }
    const auto most_of_scaling = spec.at("scaling").at("maxReplicas").as_int64();
    const std::int64_t fixed = scaled_to.value_or(runtime.at("replicas").int64_or(1));
    demand.replicas = not_negative(most_of_scaling.value_or(fixed));
    const std::int64_t per_replica = gpus_of(spec.at("workload").at("resources"), gpu_resource)
                                         .value_or(runtime.at("resources").at("gpu").bool_or(false) ? 1 : 0);
    demand.gpus = product(per_replica, demand.replicas);
    return demand;
}

}  // namespace ossa::engine
