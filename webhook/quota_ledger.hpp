// QuotaLedger: asks the TenantQuotas on behalf of reviews that are otherwise fine. The protocol is docs/quota.md, its
// arithmetic engine/quota.hpp; here is what waits on the API server.
//
// A yes is given after the reservation is stored by compare-and-set; a no only on what was read live after the review
// had come, and then at once. Reviews of one quota that wait together are written together. Whoever is not answered by
// its give_up gets "try again" (429). Memory: one copy of each quota used lately, books_max of them; queue_max reviews
// a quota. Threads: ask() any; all else, `done` included, on the executor's.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/quota_ask.hpp"
#include "kube/client/api_client.hpp"
#include "kube/types/backoff.hpp"
#include "net/metrics.hpp"
#include "net/task.hpp"

namespace ossa::webhook {

struct LedgerOptions {
    bool require_tenant_quota = false;
    std::string gpu_resource{engine::default_gpu_resource};
};

struct LedgerAnswer {
    std::optional<engine::QuotaRefusal> refusal;  // none: granted
    std::string tenant;                           // choose_tenant: the one found, or none
};

class QuotaLedger {
  public:
    using Done = std::function<void(LedgerAnswer)>;  // must not throw

    static constexpr std::size_t books_max = 2000;
    static constexpr std::size_t queue_max = 2000;

    QuotaLedger(boost::asio::any_io_executor executor, kube::ApiClient& client, LedgerOptions options,
                net::Metrics& metrics);

    // Calls `done` once. give_up: when no more is tried; a call under way may take 300 ms more.
    void ask(engine::QuotaAsk ask, net::SteadyPoint give_up, Done done);

  private:
    struct Waiting {
        engine::QuotaAsk ask;
        net::SteadyPoint give_up;
        Done done;
    };
    using Batch = std::deque<Waiting>;
    struct Queue {
        Batch waiting;
        bool working = false;
    };
    struct Book {
        Queue queue;
        std::optional<engine::TenantQuota> known;  // as of our last write
    };

    void take(Waiting waiting);
    // True: nobody works on this queue yet, so a task has to be started.
    bool enqueue(Queue& queue, Waiting waiting);
    net::Task<void> scale(Waiting waiting);
    // Answers what waits for a namespace's list, or for a quota, until nothing does.
    net::Task<void> list_for(std::string namespace_);
    net::Task<void> work_on(kube::ObjectKey key);
    template <class Settle>
    net::Task<void> drain(Queue& queue, Settle settle);
    net::Task<void> settle_untenanted(const std::string& namespace_, Batch& batch);
    net::Task<void> settle(const kube::ObjectKey& key, Book& book, Batch& batch);
    net::Task<Result<engine::TenantQuota>> read(const kube::ObjectKey& key, bool hold, net::SteadyPoint deadline);
    net::Task<Result<void>> count(engine::TenantQuota& quota, net::SteadyPoint deadline);
    net::Task<Result<std::vector<std::string>>> tenants_of(std::string namespace_, net::SteadyPoint deadline);
    net::Task<void> wait_after(const Error& error, Batch& batch);

    void answer(Waiting& waiting, LedgerAnswer answer);
    void refuse(Waiting& waiting, engine::QuotaRefusal refusal);
    void refuse_all(Batch& batch, const engine::QuotaRefusal& refusal);
    void expire(Batch& batch);

    net::TaskGroup tasks_;
    kube::ApiClient& client_;
    LedgerOptions options_;
    std::map<kube::ObjectKey, Book> books_;
    std::map<std::string, Queue> listings_;  // by namespace
    kube::Backoff jitter_;
    net::Counter& granted_;
    net::Counter& refused_;
    net::Counter& busy_;
    net::Counter& failed_;
    net::Counter& writes_;
    net::Counter& conflicts_;
};

}  // namespace ossa::webhook
