// AdmissionService: carries reviews from the HTTP server to engine::admit and its answers back; counts and logs them.
// What has to ask a TenantQuota first is answered later, from the ledger's thread.
// One Scratch for each worker thread; everything else is shared and immutable, or atomic.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/admission.hpp"
#include "net/metrics.hpp"
#include "net/server.hpp"
#include "webhook/quota_ledger.hpp"

namespace ossa::webhook {

class AdmissionService {
  public:
    // ledger: needed when policy.tenant_quotas; outlives the server.
    AdmissionService(unsigned workers, engine::Policy policy, std::size_t body_bytes_max, net::Metrics& metrics,
                     QuotaLedger* ledger);

    // POST routes for every door. They refer to this service, which must outlive the server.
    std::vector<net::Route> routes();

  private:
    void answer(engine::Door door, net::Exchange& exchange);
    engine::Decision decide(engine::Door door, const net::Request& request, std::string& answer);
    void ask_quota(engine::Door door, net::Exchange& exchange, engine::Decision decision);
    void count(engine::Door door, const engine::Decision& decision, net::SteadyPoint arrived);

    engine::Policy policy_;
    QuotaLedger* ledger_;
    json::Limits limits_;
    std::vector<engine::Scratch> scratch_;  // by worker
    std::array<net::Histogram*, engine::door_count> latency_{};
    // [door][operation][outcome]: resolved once, so that a request costs one atomic add.
    static constexpr std::size_t operations = 5;
    static constexpr std::size_t outcomes = 9;
    std::array<std::array<std::array<net::Counter*, outcomes>, operations>, engine::door_count> requests_{};
};

}  // namespace ossa::webhook
