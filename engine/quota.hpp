// The books of a TenantQuota: what may be reserved, what a recount finds, what may be let go.
//
// Pure: no clock, no I/O, values in and values out. docs/quota.md says why each rule is there, and
// tests/model/quota_model.py shows what goes wrong without it; names here are those of the model.
// The shell's part is the compare-and-set: a change of the books counts only once the API server has stored
// `status_patch` over the resourceVersion that the books were read with.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.hpp"
#include "engine/demand.hpp"

namespace ossa::engine {

// Most reservations that a quota holds at once; beyond them the answer is "try again".
inline constexpr std::size_t reservations_max = 500;
// Keeps a TenantQuota until it has no reservation.
inline constexpr std::string_view reservations_finalizer = "ossa.ai/reservations";

// A resourceVersion as the number that it is within one resource (KEP-5504); 0 when it is none.
std::uint64_t version_number(std::string_view resource_version) noexcept;

// An admitted change that no recount has seen yet.
struct Reservation {
    std::string uid, name;      // of the Agent
    std::string from_version;   // what the change starts from; empty for a creation
    std::string asked_version;  // of the quota: what the latest ask was written over. No two asks have the same.
    Demand amount;

    bool operator==(const Reservation&) const = default;
};

// A limit that is absent does not apply.
struct QuotaLimits {
    std::optional<std::int64_t> agents, replicas, gpus;
    std::optional<std::int64_t> replicas_per_agent;
};

struct TenantQuota {
    std::string namespace_, name, uid, resource_version;
    std::int64_t generation = 0;
    bool deleting = false;
    bool held = false;  // has the finalizer
    QuotaLimits limits;
    // Of status:
    std::optional<std::int64_t> observed_generation;  // absent: never counted
    std::uint64_t counted_version = 0;                // the Agents' resourceVersion that `used` was taken at
    Demand used;
    std::vector<Reservation> reservations;
};
// Of a TenantQuota as the API server has it. What cannot be read is as if it were absent.
TenantQuota tenant_quota_of(json::Value object);

// All that reservations stand for: updates add up; of the pending creations of one name only one can be stored, so
// they count as the largest.
Demand charge_of(const std::vector<Reservation>& reservations);

// ---- The webhook's side ----

// What must happen before something can be reserved.
enum class Readiness : std::uint8_t {
    ready,
    hold_first,   // add the finalizer
    count_first,  // list the Agents and take the first count
    deleting,     // never
};
Readiness readiness_of(const TenantQuota& quota) noexcept;

// One change that raises something.
struct Charge {
    std::string uid, name, from_version;
    Demand rise;                // what it adds to the tenant
    std::int64_t replicas = 0;  // that the Agent has afterwards
};

enum class Reserved : std::uint8_t {
    granted,
    exceeded,  // a limit would be
    full,      // too many are open
};
struct ReserveResult {
    Reserved outcome = Reserved::granted;
    std::string message;  // of a refusal
};
// Writes the reservation into the books if the limits allow it; on a refusal they stay as they are. Only a dimension
// that the change raises is ever a reason to refuse. The quota must be ready.
ReserveResult reserve(TenantQuota& quota, const Charge& charge);

// ---- The recount ----

// An Agent as the books need it.
struct AgentUse {
    std::string uid, name, tenant;
    std::uint64_t version = 0;
    Demand demand;
};
AgentUse agent_use_of(json::Value object, std::string_view gpu_resource = default_gpu_resource);

// The latest version of each Agent, by uid, that was seen; deleted ones with the version of their deletion.
using Sightings = std::unordered_map<std::string, std::uint64_t>;

// All Agents of a namespace at one moment.
struct Observation {
    Demand used;                // by the tenant
    std::uint64_t through = 0;  // resourceVersion of the list, or that the Store has come to
    bool consistent = false;    // a list, begun after the quota was read, that came straight from etcd
};

// A reservation as one ask for it: another ask for the same key is another one.
struct ReservationAsk {
    std::string uid, from_version, asked_version;
    auto operator<=>(const ReservationAsk&) const = default;
};
ReservationAsk ask_of(const Reservation& reservation);

bool is_retired(const Reservation& reservation, const Sightings& seen);

enum class Recounted : std::uint8_t {
    unchanged,  // the books say so already
    changed,    // write them
    too_old,    // the Store is behind the last recount: wait, or list
};
// Brings the books up to what was seen. `droppable` is heeded only with a consistent observation.
Recounted recount(TenantQuota& quota, const Observation& observation, const Sightings& seen,
                  const std::vector<ReservationAsk>& droppable = {});
// The first count of a quota that was never counted; needs a consistent observation.
void first_count(TenantQuota& quota, const Observation& observation);

// How long this process has known the reservations of each quota, on its own steady clock.
class ReservationAges {
  public:
    using Time = std::chrono::nanoseconds;  // since any fixed moment of a clock that never jumps

    // The quota was read, and the read had ended by `now`. What is no longer there is forgotten.
    void note(const TenantQuota& quota, Time now);
    void forget(const std::string& quota_uid);
    // What was known `wait` before a list that begins at `list_begins`.
    std::vector<ReservationAsk> droppable(const std::string& quota_uid, Time list_begins, Time wait) const;
    // When the first of them can be dropped, if nothing changes.
    std::optional<Time> next_drop(const std::string& quota_uid, Time wait) const;

  private:
    std::map<std::string, std::map<ReservationAsk, Time>, std::less<>> known_;  // by the quota's uid
};

// ---- Writing ----

// JSON merge patch (RFC 7386) for the status subresource, good for this resourceVersion only. Conditions are left
// alone.
std::string status_patch(const TenantQuota& quota);
// JSON merge patch of the object that adds the finalizer to those that it has, good for this resourceVersion only.
std::string hold_patch(json::Value object);
// The same without it.
std::string release_patch(json::Value object);

}  // namespace ossa::engine
