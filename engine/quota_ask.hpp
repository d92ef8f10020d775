// What an admitted change has to ask of its tenant's quota, and how a no reads. Pure: the ledger
// (webhook/quota_ledger.hpp) does the asking.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "engine/quota.hpp"

namespace ossa::engine {

struct QuotaAsk {
    enum class Kind : std::uint8_t {
        nothing,        // nothing rises
        choose_tenant,  // mutating, a creation that names none: the namespace's only TenantQuota, if it has one
        need_tenant,    // validating, a creation that names none: only a namespace without a TenantQuota takes it
        scale,          // a Scale: the Agent has to be read first (resolve_scale)
        charge,         // `charge` must be reserved with `tenant`
    };
    Kind kind = Kind::nothing;
    bool dry_run = false;  // nothing is written
    std::string namespace_, tenant;
    Charge charge;      // of a scale: uid, name, from_version and replicas alone
    std::string patch;  // choose_tenant: the JSONPatch that the tenant joins
};

// A denial whose answer has a message only.
struct QuotaRefusal {
    int code = 403;
    std::string_view reason = "Forbidden";
    std::string message;
    int retry_after_seconds = 0;
};
// "Try again in a second": clients do so by themselves.
QuotaRefusal busy(std::string message);
QuotaRefusal over_quota(std::string message);

bool in_deletion(json::Value object);

// Of a creation or an update of an Agent that is otherwise fine. old: absent on a creation. A refusal: the change is
// refused whatever the books say.
struct AgentChange {
    QuotaAsk ask;
    std::optional<QuotaRefusal> refusal;
};
AgentChange quota_ask_of(json::Value object, json::Value old, std::string_view namespace_,
                         std::string_view gpu_resource = default_gpu_resource);
// Of a Scale. Its numbers are as the Agent has them only if the versions are equal: `agent` is a live read.
QuotaAsk scale_ask_of(json::Value scale, json::Value old_scale, std::string_view name, std::string_view namespace_);
// Turns a scale into a charge or into nothing.
std::optional<QuotaRefusal> resolve_scale(QuotaAsk& ask, json::Value agent,
                                          std::string_view gpu_resource = default_gpu_resource);

// Of a live list of the namespace's TenantQuotas: the tenant that a creation gets, or none.
std::optional<std::string> only_tenant(std::span<const std::string> tenants);
// What a creation without a tenant is told, if anything. require: --require-tenant-quota.
std::optional<QuotaRefusal> judge_untenanted(std::span<const std::string> tenants, std::string_view namespace_,
                                             bool require);
// The named TenantQuota does not exist; `others` do.
QuotaRefusal no_such_tenant(std::string_view tenant, std::string_view namespace_, std::span<const std::string> others);
QuotaRefusal tenant_in_deletion(std::string_view tenant, std::string_view namespace_);

}  // namespace ossa::engine
