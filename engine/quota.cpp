#include "engine/quota.hpp"

#include <algorithm>
#include <charconv>

#include "base/bug.hpp"

namespace ossa::engine {
namespace {

using json::Value;

std::int64_t amount_of(Value value) {
    return std::max<std::int64_t>(value.int64_or(0), 0);
}

std::optional<std::int64_t> limit_of(const QuotaLimits& limits, const Dimension& dimension) {
    if (dimension.amount == &Demand::agents) {
        return limits.agents;
    }
    return dimension.amount == &Demand::replicas ? limits.replicas : limits.gpus;
}

void append_member(std::string& out, std::string_view name, std::string_view value) {
    json::append_quoted(out, name);
    out.push_back(':');
    json::append_quoted(out, value);
}

void append_member(std::string& out, std::string_view name, std::int64_t value) {
    json::append_quoted(out, name);
    out.append(":").append(std::to_string(value));
}

void append_reservation(std::string& out, const Reservation& reservation) {
    out.push_back('{');
    append_member(out, "uid", reservation.uid);
    out.push_back(',');
    append_member(out, "name", reservation.name);
    out.push_back(',');
    append_member(out, "fromVersion", reservation.from_version);
    out.push_back(',');
    append_member(out, "askedVersion", reservation.asked_version);
    for (const Dimension& dimension : dimensions) {
        out.push_back(',');
        append_member(out, dimension.name, reservation.amount.*dimension.amount);
    }
    out.push_back('}');
}

Reservation reservation_of(Value entry) {
    Reservation out;
    out.uid = text_of(entry.at("uid"));
    out.name = text_of(entry.at("name"));
    out.from_version = text_of(entry.at("fromVersion"));
    out.asked_version = text_of(entry.at("askedVersion"));
    for (const Dimension& dimension : dimensions) {
        out.amount.*dimension.amount = amount_of(entry.at(dimension.name));
    }
    return out;
}

// {"metadata":{"resourceVersion":…,"finalizers":[…]}}
std::string finalizers_patch(Value object, bool with_ours) {
    std::string out = R"({"metadata":{)";
    append_member(out, "resourceVersion", object.at("metadata").at("resourceVersion").string_or(""));
    out.append(R"(,"finalizers":[)");
    char before = 0;
    const auto add = [&](std::string_view finalizer) {
        if (before != 0) {
            out.push_back(before);
        }
        before = ',';
        json::append_quoted(out, finalizer);
    };
    for (const Value finalizer : object.at("metadata").at("finalizers").elements()) {
        if (finalizer.string_or("") != reservations_finalizer) {
            add(finalizer.string_or(""));
        }
    }
    if (with_ours) {
        add(reservations_finalizer);
    }
    return out.append("]}}");
}

}  // namespace

std::uint64_t version_number(std::string_view resource_version) noexcept {
    std::uint64_t out = 0;
    const char* const end = resource_version.data() + resource_version.size();
    const auto [at, error] = std::from_chars(resource_version.data(), end, out);
    return error == std::errc{} && at == end ? out : 0;
}

TenantQuota tenant_quota_of(Value object) {
    TenantQuota out;
    const Value metadata = object.at("metadata");
    out.namespace_ = text_of(metadata.at("namespace"));
    out.name = text_of(metadata.at("name"));
    out.uid = text_of(metadata.at("uid"));
    out.resource_version = text_of(metadata.at("resourceVersion"));
    out.generation = metadata.at("generation").int64_or(0);
    out.deleting = metadata.at("deletionTimestamp").is_string();
    for (const Value finalizer : metadata.at("finalizers").elements()) {
        out.held = out.held || finalizer.string_or("") == reservations_finalizer;
    }
    const Value spec = object.at("spec");
    out.limits = {.agents = spec.at("maxAgents").as_int64(),
                  .replicas = spec.at("maxTotalReplicas").as_int64(),
                  .gpus = spec.at("maxGPUs").as_int64(),
                  .replicas_per_agent = spec.at("maxReplicasPerAgent").as_int64()};
    const Value status = object.at("status");
    out.observed_generation = status.at("observedGeneration").as_int64();
    out.counted_version = version_number(status.at("countedVersion").string_or(""));
    for (const Dimension& dimension : dimensions) {
        out.used.*dimension.amount = amount_of(status.at(dimension.used));
    }
    for (const Value entry : status.at("reservations").elements()) {
        out.reservations.push_back(reservation_of(entry));
    }
    return out;
}

Demand charge_of(const std::vector<Reservation>& reservations) {
    Demand out;
    std::unordered_map<std::string_view, Demand> creations;
    for (const Reservation& reservation : reservations) {
        if (reservation.from_version.empty()) {
            Demand& largest = creations[reservation.name];
            largest = larger_of(largest, reservation.amount);
        } else {
            out = sum(out, reservation.amount);
        }
    }
    for (const auto& [name, largest] : creations) {
        out = sum(out, largest);
    }
    return out;
}

Readiness readiness_of(const TenantQuota& quota) noexcept {
    if (quota.deleting) {
        return Readiness::deleting;
    }
    if (!quota.held) {
        return Readiness::hold_first;
    }
    return quota.observed_generation ? Readiness::ready : Readiness::count_first;
}

ReserveResult reserve(TenantQuota& quota, const Charge& charge) {
    OSSA_BUG_IF(readiness_of(quota) != Readiness::ready, "only a quota that is held and counted can be reserved from");
    std::vector<Reservation> after = quota.reservations;
    auto same = std::find_if(after.begin(), after.end(), [&](const Reservation& r) {
        return r.uid == charge.uid && r.from_version == charge.from_version;
    });
    if (same == after.end()) {
        if (after.size() >= reservations_max) {
            return {Reserved::full, "quota \"" + quota.name + "\" has " + std::to_string(after.size()) +
                                        " changes under way, which is the most it keeps; try again"};
        }
        after.push_back({.uid = charge.uid, .name = charge.name, .from_version = charge.from_version});
        same = std::prev(after.end());
    }
    same->amount = larger_of(same->amount, charge.rise);
    same->asked_version = quota.resource_version;

    const Demand charged = charge_of(after);
    const Demand total = sum(quota.used, charged);
    std::string refusal;
    const auto refuse = [&](std::string_view member, std::int64_t limit, const std::string& numbers) {
        refusal.append(refusal.empty() ? "quota \"" + quota.name + "\": " : "; ");
        refusal.append(member).append(" ").append(std::to_string(limit)).append(" would be exceeded: ").append(numbers);
    };
    for (const Dimension& dimension : dimensions) {
        const std::int64_t requested = charge.rise.*dimension.amount;
        const auto limit = limit_of(quota.limits, dimension);
        if (requested > 0 && limit && total.*dimension.amount > *limit) {
            refuse(dimension.limit, *limit,
                   "used " + std::to_string(quota.used.*dimension.amount) + ", reserved " +
                       std::to_string(charged.*dimension.amount - requested) + ", requested +" +
                       std::to_string(requested));
        }
    }
    const auto most = quota.limits.replicas_per_agent;
    if (charge.rise.replicas > 0 && most && charge.replicas > *most) {
        refuse("maxReplicasPerAgent", *most, "requested " + std::to_string(charge.replicas));
    }
    if (!refusal.empty()) {
        return {Reserved::exceeded, std::move(refusal)};
    }
    quota.reservations = std::move(after);
    return {};
}

AgentUse agent_use_of(Value object, std::string_view gpu_resource) {
    AgentUse out;
    const Value metadata = object.at("metadata");
    out.uid = text_of(metadata.at("uid"));
    out.name = text_of(metadata.at("name"));
    out.version = version_number(metadata.at("resourceVersion").string_or(""));
    const Value spec = object.at("spec");
    out.tenant = text_of(spec.at("tenantRef"));
    out.demand = demand_of(spec, gpu_resource);
    return out;
}

ReservationAsk ask_of(const Reservation& reservation) {
    return {reservation.uid, reservation.from_version, reservation.asked_version};
}

bool is_retired(const Reservation& reservation, const Sightings& seen) {
    const auto found = seen.find(reservation.uid);
    return found != seen.end() &&
           (reservation.from_version.empty() || found->second > version_number(reservation.from_version));
}

Recounted recount(TenantQuota& quota, const Observation& observation, const Sightings& seen,
                  const std::vector<ReservationAsk>& droppable) {
    OSSA_BUG_IF(!quota.observed_generation, "a quota that was never counted needs its first count");
    if (observation.through < quota.counted_version) {
        return Recounted::too_old;
    }
    std::vector<Reservation> left;
    for (const Reservation& reservation : quota.reservations) {
        const bool dropped = observation.consistent &&
                             std::find(droppable.begin(), droppable.end(), ask_of(reservation)) != droppable.end();
        if (!dropped && !is_retired(reservation, seen)) {
            left.push_back(reservation);
        }
    }
    if (left.size() == quota.reservations.size() && observation.used == quota.used &&
        quota.observed_generation == quota.generation) {
        return Recounted::unchanged;
    }
    quota.used = observation.used;
    quota.reservations = std::move(left);
    quota.counted_version = observation.through;
    quota.observed_generation = quota.generation;
    return Recounted::changed;
}

void first_count(TenantQuota& quota, const Observation& observation) {
    OSSA_BUG_IF(quota.observed_generation.has_value(), "a first count is taken once");
    OSSA_BUG_IF(!observation.consistent, "a first count is taken from a list");
    quota.used = observation.used;
    quota.reservations.clear();
    quota.counted_version = observation.through;
    quota.observed_generation = quota.generation;
}

void ReservationAges::note(const TenantQuota& quota, Time now) {
    std::map<ReservationAsk, Time> known;
    const auto before = known_.find(quota.uid);
    for (const Reservation& reservation : quota.reservations) {
        ReservationAsk ask = ask_of(reservation);
        Time since = now;
        if (before != known_.end()) {
            if (const auto found = before->second.find(ask); found != before->second.end()) {
                since = found->second;
            }
        }
        known.emplace(std::move(ask), since);
    }
    if (known.empty()) {
        forget(quota.uid);
    } else {
        known_.insert_or_assign(quota.uid, std::move(known));
    }
}

void ReservationAges::forget(const std::string& quota_uid) {
    known_.erase(quota_uid);
}

std::vector<ReservationAsk> ReservationAges::droppable(const std::string& quota_uid, Time list_begins,
                                                       Time wait) const {
    std::vector<ReservationAsk> out;
    if (const auto found = known_.find(quota_uid); found != known_.end()) {
        for (const auto& [ask, since] : found->second) {
            if (list_begins - since >= wait) {
                out.push_back(ask);
            }
        }
    }
    return out;
}

std::optional<ReservationAges::Time> ReservationAges::next_drop(const std::string& quota_uid, Time wait) const {
    std::optional<Time> out;
    if (const auto found = known_.find(quota_uid); found != known_.end()) {
        for (const auto& [ask, since] : found->second) {
            out = std::min(out.value_or(since + wait), since + wait);
        }
    }
    return out;
}

std::string status_patch(const TenantQuota& quota) {
    std::string out = R"({"metadata":{)";
    append_member(out, "resourceVersion", quota.resource_version);
    out.append(R"(},"status":{)");
    append_member(out, "observedGeneration", quota.observed_generation.value_or(0));
    out.push_back(',');
    append_member(out, "countedVersion", std::to_string(quota.counted_version));
    for (const Dimension& dimension : dimensions) {
        out.push_back(',');
        append_member(out, dimension.used, quota.used.*dimension.amount);
    }
    out.append(R"(,"reservations":[)");
    for (const Reservation& reservation : quota.reservations) {
        if (&reservation != quota.reservations.data()) {
            out.push_back(',');
        }
        append_reservation(out, reservation);
    }
    return out.append("]}}");
}

std::string hold_patch(Value object) {
    return finalizers_patch(object, true);
}

std::string release_patch(Value object) {
    return finalizers_patch(object, false);
}

}  // namespace ossa::engine
