// LeaseMachine: one of several candidates leads, and stops before another can have begun.
//
// It trusts its own steady clock alone: another holder's times are compared with nothing but themselves; a lease has
// ended when it has not changed for its duration since *we* saw it change (R054). A leader leads until renew_deadline
// after it *sent* its last successful renewal, which is before the others may take over (R052): is_leader() must be
// asked before each write. Source: client-go leaderelection, coordination.k8s.io/v1 Lease.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/json.hpp"
#include "kube/types/backoff.hpp"

namespace ossa::kube {

struct LeaseTimes {
    std::chrono::milliseconds lease{15'000};           // others wait so long
    std::chrono::milliseconds renew_deadline{10'000};  // we lead so long; shorter than the above
    std::chrono::milliseconds retry{2'000};
};

// A Lease as the API server has it.
struct LeaseRecord {
    std::string holder;  // empty: released
    std::string resource_version;
    std::int64_t duration_seconds = 0;
    std::int64_t transitions = 0;
    std::string renew_time, acquire_time;
};
LeaseRecord lease_record_of(json::Value lease);

class LeaseMachine {
  public:
    using Time = std::chrono::steady_clock::time_point;
    struct Read {};
    struct Create {};
    struct Take {  // by compare-and-set on this version
        LeaseRecord over;
        bool ours;  // a renewal
    };
    struct Sleep {
        Time until;
    };
    using Step = std::variant<Read, Create, Take, Sleep>;

    LeaseMachine(std::string identity, LeaseTimes times, std::uint32_t seed)
        : identity_(std::move(identity)), times_(times), jitter_(times.retry, times.retry, seed) {}

    const Step& step() const noexcept { return step_; }
    void on_read(LeaseRecord record, Time now);
    void on_absent();
    // The write was sent at `sent` and is stored.
    void on_written(LeaseRecord record, Time sent, Time now);
    void on_failure(Time now);  // of a read or a write, conflicts too
    void on_slept();

    bool is_leader(Time now) const noexcept { return leads_until_ && now < *leads_until_; }
    // Once true for good: it has led and does so no more. The process ends rather than going on.
    bool has_lost(Time now) const noexcept { return leads_until_ && now >= *leads_until_; }
    std::optional<Time> leads_until() const noexcept { return leads_until_; }
    const std::string& holder() const noexcept { return seen_.holder; }

  private:
    std::string identity_;
    LeaseTimes times_;
    Step step_ = Read{};
    bool renew_next_ = false;
    LeaseRecord seen_;
    Time changed_at_{};
    bool has_seen_ = false;
    std::optional<Time> leads_until_;
    Backoff jitter_;
};

// The object to create or to replace it with.
std::string lease_text(const std::string& namespace_, const std::string& name, const std::string& identity,
                       const LeaseTimes& times, const LeaseRecord* over, bool ours,
                       std::chrono::system_clock::time_point now);
// The same, given up by its holder, so that another can begin at once.
std::string released_lease_text(const std::string& namespace_, const std::string& name, const LeaseRecord& over,
                                std::chrono::system_clock::time_point now);

}  // namespace ossa::kube
