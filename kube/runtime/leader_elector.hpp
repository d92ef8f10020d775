// LeaderElector: drives LeaseMachine against a Lease of the API server. Thread: the executor's.
#pragma once

#include <functional>
#include <string>

#include "kube/client/api_client.hpp"
#include "kube/types/lease.hpp"
#include "net/task.hpp"

namespace ossa::kube {

class LeaderElector {
  public:
    LeaderElector(ApiClient& client, ObjectKey lease, std::string identity, LeaseTimes times = {});

    // Calls begun() once when it leads, and ended() once when it does so no more: then nothing may be written any more
    // and the process should end. Returns after ended().
    Task<void> run(std::function<void()> begun, std::function<void()> ended);

    // To be asked before each write, which must be over by leads_until().
    bool is_leader() const;
    SteadyPoint leads_until() const;
    const std::string& holder() const noexcept { return machine_.holder(); }
    // Gives the Lease up, so that another leads at once. After this it leads no more.
    Task<void> release();

  private:
    Task<void> write(const LeaseRecord* over, bool ours);

    ApiClient& client_;
    ObjectKey lease_;
    std::string identity_;
    LeaseTimes times_;
    LeaseMachine machine_;
    LeaseRecord written_;
    bool released_ = false;
};

}  // namespace ossa::kube
