#include "engine/quota_ask.hpp"

namespace ossa::engine {

using json::quoted;
using json::Value;

namespace {

constexpr std::size_t tenants_listed_max = 10;

std::string listed(std::span<const std::string> tenants) {
    std::string out;
    for (std::size_t i = 0; i < tenants.size() && i < tenants_listed_max; ++i) {
        out.append(i == 0 ? "" : ", ").append(tenants[i]);
    }
    return tenants.size() > tenants_listed_max
               ? out + " and " + std::to_string(tenants.size() - tenants_listed_max) + " more"
               : out;
}

QuotaRefusal rise_in_deletion(std::string_view name) {
    return {.message =
                "agent " + quoted(name) + " is being deleted: until it is gone it may not take more than it has"};
}

}  // namespace

bool in_deletion(Value object) {
    return object.at("metadata").at("deletionTimestamp").is_string();
}

QuotaRefusal busy(std::string message) {
    return {.code = 429, .reason = "TooManyRequests", .message = std::move(message), .retry_after_seconds = 1};
}

QuotaRefusal over_quota(std::string message) {
    return {.message = std::move(message)};
}

AgentChange quota_ask_of(Value object, Value old, std::string_view namespace_, std::string_view gpu_resource) {
    AgentChange out;
    QuotaAsk& ask = out.ask;
    const Value metadata = object.at("metadata");
    const bool creation = !old.exists();
    const std::string name = text_of(metadata.at("name"));
    const std::string before_tenant = text_of(old.at("spec").at("tenantRef"));
    ask.namespace_ = namespace_;
    ask.tenant = text_of(object.at("spec").at("tenantRef"));
    if (!creation && ask.tenant.empty() && !before_tenant.empty()) {
        out.refusal =
            QuotaRefusal{.message = "agent " + quoted(name) + " belongs to tenant " + quoted(before_tenant) +
                                    ": spec.tenantRef cannot be taken away, only changed to another TenantQuota"};
        return out;
    }
    const Demand after = demand_of(object.at("spec"), gpu_resource);
    const Demand before = creation ? Demand{} : demand_of(old.at("spec"), gpu_resource);
    const bool moved = creation || ask.tenant != before_tenant;
    const Demand rises = rise(moved ? Demand{} : before, after);
    if (in_deletion(object)) {
        if (!rise(before, after).is_nothing() || (moved && !creation)) {
            out.refusal = rise_in_deletion(name);
        }
        return out;  // what falls or stays needs no quota
    }
    if (ask.tenant.empty()) {
        ask.kind = creation ? QuotaAsk::Kind::need_tenant : QuotaAsk::Kind::nothing;
        return out;
    }
    if (rises.is_nothing()) {
        return out;
    }
    ask.kind = QuotaAsk::Kind::charge;
    ask.charge = {.uid = text_of(metadata.at("uid")),
                  .name = name,
                  .from_version = text_of(old.at("metadata").at("resourceVersion")),
                  .rise = rises,
                  .replicas = after.replicas};
    return out;
}

QuotaAsk scale_ask_of(Value scale, Value old_scale, std::string_view name, std::string_view namespace_) {
    const Value metadata = old_scale.at("metadata");
    return {.kind = QuotaAsk::Kind::scale,
            .namespace_ = std::string(namespace_),
            .charge = {.uid = text_of(metadata.at("uid")),
                       .name = std::string(name),
                       .from_version = text_of(metadata.at("resourceVersion")),
                       .replicas = scale.at("spec").at("replicas").int64_or(0)}};
}

std::optional<QuotaRefusal> resolve_scale(QuotaAsk& ask, Value agent, std::string_view gpu_resource) {
    const Value metadata = agent.at("metadata");
    const std::string_view name = ask.charge.name;
    if (text_of(metadata.at("uid")) != ask.charge.uid ||
        text_of(metadata.at("resourceVersion")) != ask.charge.from_version) {
        return QuotaRefusal{
            .code = 409,
            .reason = "Conflict",
            .message = "agent " + quoted(name) + " has changed meanwhile; read it again and scale anew"};
    }
    const Value spec = agent.at("spec");
    if (const Value scaling = spec.at("scaling"); scaling.is_object()) {
        return QuotaRefusal{.message = "agent " + quoted(name) +
                                       " has spec.scaling, so its autoscaler owns the replicas (" +
                                       std::to_string(scaling.at("minReplicas").int64_or(1)) + " to " +
                                       std::to_string(scaling.at("maxReplicas").int64_or(1)) +
                                       "): change spec.scaling, or remove it and scale then"};
    }
    const Demand before = demand_of(spec, gpu_resource);
    const Demand after = demand_of(spec, gpu_resource, ask.charge.replicas);
    const Demand rises = rise(before, after);
    ask.kind = QuotaAsk::Kind::nothing;
    if (rises.is_nothing()) {
        return {};
    }
    if (in_deletion(agent)) {
        return rise_in_deletion(name);
    }
    ask.tenant = text_of(spec.at("tenantRef"));
    if (!ask.tenant.empty()) {
        ask.kind = QuotaAsk::Kind::charge;
        ask.charge.rise = rises;
        ask.charge.replicas = after.replicas;
    }
    return {};
}

std::optional<std::string> only_tenant(std::span<const std::string> tenants) {
    return tenants.size() == 1 ? std::optional{tenants.front()} : std::nullopt;
}

std::optional<QuotaRefusal> judge_untenanted(std::span<const std::string> tenants, std::string_view namespace_,
                                             bool require) {
    const std::string where = "namespace " + quoted(namespace_);
    if (tenants.empty()) {
        if (require) {
            return QuotaRefusal{.message = where +
                                           " has no TenantQuota, and this cluster takes no Agent without a tenant: ask "
                                           "for a TenantQuota there and name it in spec.tenantRef"};
        }
        return {};
    }
    if (tenants.size() == 1) {
        // The mutating review saw none, or several.
        return busy("TenantQuota " + quoted(tenants.front()) + " of " + where +
                    " has just become the only one; try again");
    }
    return QuotaRefusal{.message = where + " has several TenantQuotas: name one of them in spec.tenantRef (" +
                                   listed(tenants) + ")"};
}

QuotaRefusal no_such_tenant(std::string_view tenant, std::string_view namespace_, std::span<const std::string> others) {
    return {.message = "spec.tenantRef " + quoted(tenant) + ": namespace " + quoted(namespace_) +
                       " has no such TenantQuota" + (others.empty() ? " and no other" : "; it has " + listed(others))};
}

QuotaRefusal tenant_in_deletion(std::string_view tenant, std::string_view namespace_) {
    return {.message = "quota " + quoted(tenant) + " of namespace " + quoted(namespace_) +
                       " is being deleted and takes nothing more"};
}

}  // namespace ossa::engine
