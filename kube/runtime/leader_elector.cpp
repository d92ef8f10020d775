#include "kube/runtime/leader_elector.hpp"

#include <functional>

#include "net/log.hpp"

namespace ossa::kube {
namespace {

SteadyPoint now() {
    return std::chrono::steady_clock::now();
}

}  // namespace

LeaderElector::LeaderElector(ApiClient& client, ObjectKey lease, std::string identity, LeaseTimes times)
    : client_(client),
      lease_(std::move(lease)),
      identity_(std::move(identity)),
      times_(times),
      machine_(identity_, times, static_cast<std::uint32_t>(std::hash<std::string>{}(identity_))) {}

bool LeaderElector::is_leader() const {
    return !released_ && machine_.is_leader(now());
}

SteadyPoint LeaderElector::leads_until() const {
    return released_ ? SteadyPoint{} : machine_.leads_until().value_or(SteadyPoint{});
}

Task<void> LeaderElector::write(const LeaseRecord* over, bool ours) {
    const std::string text =
        lease_text(lease_.namespace_, lease_.name, identity_, times_, over, ours, std::chrono::system_clock::now());
    const SteadyPoint sent = now();
    auto sending = client_.send(
        over == nullptr ? create_request(leases, lease_.namespace_, text) : replace_request(leases, lease_, text),
        sent + times_.retry * 2);
    const auto stored = co_await std::move(sending);
    if (!stored) {
        OSSA_LOG(debug, "the lease was not written", {"error", stored.error().message()});
        machine_.on_failure(now());
        co_return;
    }
    written_ = lease_record_of(stored->root());
    machine_.on_written(written_, sent, now());
}

Task<void> LeaderElector::run(std::function<void()> begun, std::function<void()> ended) {
    bool leads = false;
    std::string told_holder;
    while (!released_) {
        if (leads && machine_.has_lost(now())) {
            OSSA_LOG(error, "the lease could not be renewed in time; another may lead now",
                     {"lease", lease_.namespace_ + "/" + lease_.name});
            break;
        }
        const LeaseMachine::Step step = machine_.step();
        if (const auto* const sleep = std::get_if<LeaseMachine::Sleep>(&step)) {
            const SteadyPoint until = leads ? std::min(sleep->until, *machine_.leads_until()) : sleep->until;
            auto sleeping = net::sleep_until(until);
            co_await std::move(sleeping);
            if (now() >= sleep->until) {
                machine_.on_slept();
            }
        } else if (std::holds_alternative<LeaseMachine::Create>(step)) {
            auto writing = write(nullptr, false);
            co_await std::move(writing);
        } else if (const auto* const take = std::get_if<LeaseMachine::Take>(&step)) {
            auto writing = write(&take->over, take->ours);
            co_await std::move(writing);
        } else {
            auto reading = client_.send(get_request(leases, lease_), now() + times_.retry * 2);
            const auto lease = co_await std::move(reading);
            if (lease) {
                machine_.on_read(lease_record_of(lease->root()), now());
            } else if (lease.error().code() == ErrorCode::not_found) {
                machine_.on_absent();
            } else {
                OSSA_LOG(warn, "the lease cannot be read", {"error", lease.error().message()});
                machine_.on_failure(now());
            }
        }
        if (!leads && machine_.is_leader(now())) {
            leads = true;
            OSSA_LOG(info, "leads", {"lease", lease_.namespace_ + "/" + lease_.name}, {"identity", identity_});
            begun();
        } else if (!leads && machine_.holder() != told_holder) {
            told_holder = machine_.holder();
            OSSA_LOG(info, "waits for the leader", {"holder", told_holder});
        }
    }
    if (leads) {
        ended();
    }
}

Task<void> LeaderElector::release() {
    const bool led = is_leader();
    released_ = true;
    if (led) {
        auto sending = client_.send(replace_request(leases, lease_,
                                                    released_lease_text(lease_.namespace_, lease_.name, written_,
                                                                        std::chrono::system_clock::now())),
                                    now() + std::chrono::seconds(2));
        const auto released = co_await std::move(sending);
        if (!released) {
            OSSA_LOG(warn, "the lease was not given up; another leads when it has run out",
                     {"error", released.error().message()});
        }
    }
}

}  // namespace ossa::kube
