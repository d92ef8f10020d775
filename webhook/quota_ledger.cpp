#include "webhook/quota_ledger.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/bug.hpp"
#include "net/log.hpp"

namespace ossa::webhook {

using engine::QuotaAsk;
using engine::QuotaRefusal;
using engine::Readiness;
using engine::Reserved;
using engine::TenantQuota;
using kube::ObjectKey;
using net::SteadyPoint;
using net::Task;
using std::chrono::milliseconds;

namespace {

// What a call may take beyond the moment at which we stop trying.
constexpr milliseconds last_call{300};
constexpr std::size_t reservations_alarm = 100;

SteadyPoint now() {
    return std::chrono::steady_clock::now();
}

template <class Batch>
SteadyPoint call_deadline(const Batch& batch) {
    SteadyPoint first = SteadyPoint::max() - last_call;
    for (const auto& waiting : batch) {
        first = std::min(first, waiting.give_up);
    }
    return first + last_call;
}

QuotaRefusal too_slow() {
    return engine::busy("the tenant's quota could not be asked in time; try again");
}

QuotaRefusal broken(const Error& error) {
    return {.code = 500,
            .reason = "InternalError",
            .message = "the tenant's quota could not be asked: " + error.message() +
                       " (check ossa-webhook's permissions: manifests/rbac/webhook.yaml)"};
}

// Waiting does not mend these.
bool is_final(const Error& error) {
    return error.code() == ErrorCode::forbidden || error.code() == ErrorCode::unauthenticated ||
           error.code() == ErrorCode::invalid || error.code() == ErrorCode::too_large;
}

}  // namespace

QuotaLedger::QuotaLedger(boost::asio::any_io_executor executor, kube::ApiClient& client, LedgerOptions options,
                         net::Metrics& metrics)
    : tasks_(std::move(executor)),
      client_(client),
      options_(std::move(options)),
      jitter_(milliseconds(10), milliseconds(250), static_cast<std::uint32_t>(now().time_since_epoch().count())),
      granted_(
          metrics.counter("ossa_quota_asks_total", "Reviews that had to ask a TenantQuota.", {{"outcome", "granted"}})),
      refused_(
          metrics.counter("ossa_quota_asks_total", "Reviews that had to ask a TenantQuota.", {{"outcome", "refused"}})),
      busy_(metrics.counter("ossa_quota_asks_total", "Reviews that had to ask a TenantQuota.", {{"outcome", "busy"}})),
      failed_(
          metrics.counter("ossa_quota_asks_total", "Reviews that had to ask a TenantQuota.", {{"outcome", "failed"}})),
      writes_(metrics.counter("ossa_quota_writes_total", "Writes of reservations, each of one or more.")),
      conflicts_(metrics.counter("ossa_quota_conflicts_total", "Such writes that another writer came before.")) {}

void QuotaLedger::ask(QuotaAsk ask, SteadyPoint give_up, Done done) {
    boost::asio::post(tasks_.executor(), [this, waiting = Waiting{std::move(ask), give_up, std::move(done)}]() mutable {
        take(std::move(waiting));
    });
}

void QuotaLedger::take(Waiting waiting) {
    switch (waiting.ask.kind) {
        case QuotaAsk::Kind::nothing: return answer(waiting, {});
        case QuotaAsk::Kind::scale: return tasks_.spawn("scale", scale(std::move(waiting)));
        case QuotaAsk::Kind::charge: {
            const ObjectKey key{waiting.ask.namespace_, waiting.ask.tenant};
            if (enqueue(books_[key].queue, std::move(waiting))) {
                tasks_.spawn("quota " + key.namespace_ + "/" + key.name, work_on(key));
            }
            return;
        }
        case QuotaAsk::Kind::choose_tenant:
        case QuotaAsk::Kind::need_tenant: {
            const std::string namespace_ = waiting.ask.namespace_;
            if (enqueue(listings_[namespace_], std::move(waiting))) {
                tasks_.spawn("tenants of " + namespace_, list_for(namespace_));
            }
            return;
        }
    }
}

bool QuotaLedger::enqueue(Queue& queue, Waiting waiting) {
    if (queue.waiting.size() >= queue_max) {  // so somebody works on it
        refuse(waiting, engine::busy("too many reviews of this tenant are waiting; try again"));
        return false;
    }
    queue.waiting.push_back(std::move(waiting));
    return !std::exchange(queue.working, true);
}

void QuotaLedger::answer(Waiting& waiting, LedgerAnswer answer) {
    const int code = answer.refusal ? answer.refusal->code : 200;
    (code == 200 ? granted_ : code == 429 ? busy_ : code >= 500 ? failed_ : refused_).add();
    std::exchange(waiting.done, {})(std::move(answer));
}

void QuotaLedger::refuse(Waiting& waiting, QuotaRefusal refusal) {
    answer(waiting, {.refusal = std::move(refusal), .tenant = {}});
}

void QuotaLedger::refuse_all(Batch& batch, const QuotaRefusal& refusal) {
    for (Waiting& waiting : batch) {
        refuse(waiting, refusal);
    }
    batch.clear();
}

void QuotaLedger::expire(Batch& batch) {
    const SteadyPoint at = now();
    std::erase_if(batch, [&](Waiting& waiting) {
        const bool late = at >= waiting.give_up;
        if (late) {
            refuse(waiting, too_slow());
        }
        return late;
    });
}

// Before another try; what no try will mend is refused.
Task<void> QuotaLedger::wait_after(const Error& error, Batch& batch) {
    if (is_final(error)) {
        OSSA_LOG(error, "a TenantQuota cannot be asked", {"error", error.message()},
                 {"next", "check the permissions of ossa-webhook: manifests/rbac/webhook.yaml"});
        refuse_all(batch, broken(error));
        co_return;
    }
    if (error.code() != ErrorCode::conflict) {
        OSSA_LOG(warn, "the API server could not be asked about a TenantQuota", {"error", error.message()});
    }
    const milliseconds wait = std::max(jitter_.next(), error.retry_after().value_or(milliseconds(0)));
    auto sleeping = net::sleep_until(now() + std::min(wait, milliseconds(1000)));
    co_await std::move(sleeping);
}

Task<Result<std::vector<std::string>>> QuotaLedger::tenants_of(std::string namespace_, SteadyPoint deadline) {
    std::vector<std::string> names;
    auto listing = client_.list(kube::tenant_quotas, std::move(namespace_), deadline, [&names](json::Value item) {
        names.emplace_back(item.at("metadata").at("name").string_or(""));
    });
    auto listed = co_await std::move(listing);
    if (!listed) {
        co_return unexpected(std::move(listed).error());
    }
    co_return names;
}

// Batch by batch; who comes while one is settled wants a later look. What settle() leaves in the batch goes first then.
template <class Settle>
Task<void> QuotaLedger::drain(Queue& queue, Settle settle) {
    Batch batch;
    try {
        while (expire(queue.waiting), !queue.waiting.empty()) {
            batch = std::exchange(queue.waiting, {});
            auto settling = settle(batch);
            co_await std::move(settling);
            queue.waiting.insert(queue.waiting.begin(), std::make_move_iterator(batch.begin()),
                                 std::make_move_iterator(batch.end()));
            batch.clear();
        }
    } catch (const std::exception& e) {
        count_bug();
        OSSA_LOG(error, "reviews that ask a TenantQuota could not be judged: this is a bug of ours",
                 {"what", std::string_view{e.what()}});
        const Error error{ErrorCode::internal, "an internal mistake; see ossa-webhook's log"};
        std::erase_if(batch, [](const Waiting& waiting) { return !waiting.done; });
        refuse_all(batch, broken(error));
        refuse_all(queue.waiting, broken(error));
    }
    queue.working = false;
}

Task<void> QuotaLedger::list_for(std::string namespace_) {
    auto draining = drain(listings_[namespace_], [&](Batch& batch) { return settle_untenanted(namespace_, batch); });
    co_await std::move(draining);
    listings_.erase(namespace_);
}

Task<void> QuotaLedger::settle_untenanted(const std::string& namespace_, Batch& batch) {
    auto reading = tenants_of(namespace_, call_deadline(batch));
    const auto tenants = co_await std::move(reading);
    if (!tenants) {
        auto waiting = wait_after(tenants.error(), batch);
        co_return co_await std::move(waiting);
    }
    jitter_.reset();
    for (Waiting& waiting : batch) {
        if (waiting.ask.kind == QuotaAsk::Kind::choose_tenant) {
            answer(waiting, {.refusal = {}, .tenant = engine::only_tenant(*tenants).value_or("")});
        } else {
            answer(waiting, {.refusal = engine::judge_untenanted(*tenants, namespace_, options_.require_tenant_quota),
                             .tenant = {}});
        }
    }
    batch.clear();
}

Task<void> QuotaLedger::scale(Waiting waiting) {
    Batch batch;
    batch.push_back(std::move(waiting));
    while (expire(batch), !batch.empty()) {
        Waiting& one = batch.front();
        auto reading = client_.send(kube::get_request(kube::agents, {one.ask.namespace_, one.ask.charge.name}),
                                    call_deadline(batch));
        const auto agent = co_await std::move(reading);
        if (!agent && agent.error().code() != ErrorCode::not_found) {
            auto sleeping = wait_after(agent.error(), batch);
            co_await std::move(sleeping);
            continue;
        }
        const json::Value object = agent ? agent->root() : json::Value{};
        if (auto refusal = engine::resolve_scale(one.ask, object, options_.gpu_resource)) {
            co_return refuse(one, std::move(*refusal));
        }
        co_return take(std::move(one));
    }
}

Task<void> QuotaLedger::work_on(ObjectKey key) {
    Book& book = books_[key];  // stays until this task erases it
    auto draining = drain(book.queue, [&](Batch& batch) { return settle(key, book, batch); });
    co_await std::move(draining);
    if (!book.known || books_.size() > books_max) {
        books_.erase(key);
    }
}

// As it is now; hold: with the finalizer, which is added when something can be reserved at all.
Task<Result<TenantQuota>> QuotaLedger::read(const ObjectKey& key, bool hold, SteadyPoint deadline) {
    auto reading = client_.send(kube::get_request(kube::tenant_quotas, key), deadline);
    const auto object = co_await std::move(reading);
    if (!object) {
        co_return unexpected(object.error());
    }
    TenantQuota quota = engine::tenant_quota_of(object->root());
    if (!hold || engine::readiness_of(quota) != Readiness::hold_first) {
        co_return quota;
    }
    auto writing = client_.send(
        kube::merge_patch_request(kube::tenant_quotas, key, "", engine::hold_patch(object->root())), deadline);
    const auto held = co_await std::move(writing);
    if (!held) {
        co_return unexpected(held.error());
    }
    co_return engine::tenant_quota_of(held->root());
}

Task<Result<void>> QuotaLedger::count(TenantQuota& quota, SteadyPoint deadline) {
    engine::Observation seen{.used = {}, .through = 0, .consistent = true};
    auto listing = client_.list(kube::agents, quota.namespace_, deadline, [&](json::Value item) {
        const engine::AgentUse use = engine::agent_use_of(item, options_.gpu_resource);
        if (use.tenant == quota.name) {
            seen.used = engine::sum(seen.used, use.demand);
        }
    });
    const auto version = co_await std::move(listing);
    if (!version) {
        co_return unexpected(version.error());
    }
    seen.through = engine::version_number(*version);
    engine::first_count(quota, seen);
    co_return Result<void>{};
}

// Answers those of the batch that can be answered; what is left in it wants another try.
Task<void> QuotaLedger::settle(const ObjectKey& key, Book& book, Batch& batch) {
    bool live = false;  // `quota` was read, or written, after all of the batch had come
    std::optional<TenantQuota> quota = std::exchange(book.known, {});
    const bool only_dry =
        std::all_of(batch.begin(), batch.end(), [](const Waiting& waiting) { return waiting.ask.dry_run; });
    while (!batch.empty()) {
        const SteadyPoint deadline = call_deadline(batch);
        if (!quota || (!live && engine::readiness_of(*quota) != Readiness::ready)) {
            auto reading = this->read(key, !only_dry, deadline);
            auto read = co_await std::move(reading);
            if (!read && read.error().code() == ErrorCode::not_found) {
                auto listing = tenants_of(key.namespace_, deadline);
                const auto others = co_await std::move(listing);
                co_return refuse_all(batch, engine::no_such_tenant(key.name, key.namespace_,
                                                                   others ? *others : std::vector<std::string>{}));
            }
            if (!read) {
                auto waiting = wait_after(read.error(), batch);
                co_return co_await std::move(waiting);
            }
            quota = std::move(*read);
            live = true;
        }
        if (quota->deleting) {
            co_return refuse_all(batch, engine::tenant_in_deletion(key.name, key.namespace_));
        }
        TenantQuota before = *quota;
        before.held = true;  // or nothing will be written
        if (engine::readiness_of(before) == Readiness::count_first) {
            auto counting = count(before, deadline);
            const auto counted = co_await std::move(counting);
            if (!counted) {
                auto waiting = wait_after(counted.error(), batch);
                co_return co_await std::move(waiting);
            }
        }

        expire(batch);
        TenantQuota books = before;
        Batch granted, left;
        for (Waiting& waiting : batch) {
            TenantQuota alone = waiting.ask.dry_run ? before : TenantQuota{};
            engine::ReserveResult result = engine::reserve(waiting.ask.dry_run ? alone : books, waiting.ask.charge);
            if (result.outcome == Reserved::exceeded && live && !waiting.ask.dry_run) {
                // Without those before it in the batch, which may never be written, is it a no as well?
                alone = before;
                result = engine::reserve(alone, waiting.ask.charge);
                if (result.outcome == Reserved::granted) {
                    left.push_back(std::move(waiting));
                    continue;
                }
            }
            switch (result.outcome) {
                case Reserved::granted:
                    if (waiting.ask.dry_run) {
                        answer(waiting, {});
                    } else {
                        granted.push_back(std::move(waiting));
                    }
                    break;
                case Reserved::exceeded:
                    if (live) {
                        refuse(waiting, engine::over_quota(std::move(result.message)));
                    } else {
                        left.push_back(std::move(waiting));
                    }
                    break;
                case Reserved::full: refuse(waiting, engine::busy(std::move(result.message))); break;
            }
        }
        batch = std::move(left);
        if (granted.empty()) {
            if (live || batch.empty()) {
                book.known = std::move(quota);
                continue;  // none is left then
            }
            quota.reset();  // a no needs a live read
            continue;
        }
        if (books.reservations.size() >= reservations_alarm && before.reservations.size() < reservations_alarm) {
            OSSA_LOG(warn, "a TenantQuota has many open reservations: is ossa-controller running?",
                     {"namespace", key.namespace_}, {"quota", key.name}, {"open", books.reservations.size()});
        }
        writes_.add();
        auto writing =
            client_.send(kube::merge_patch_request(kube::tenant_quotas, key, "status", engine::status_patch(books)),
                         call_deadline(granted));
        const auto written = co_await std::move(writing);
        if (!written) {
            // Stored or not: ask anew, on what is there then.
            batch.insert(batch.begin(), std::make_move_iterator(granted.begin()),
                         std::make_move_iterator(granted.end()));
            if (written.error().code() == ErrorCode::conflict) {
                conflicts_.add();
            }
            if (written.error().code() == ErrorCode::not_found) {
                quota.reset();
                continue;
            }
            auto waiting = wait_after(written.error(), batch);
            co_return co_await std::move(waiting);
        }
        jitter_.reset();
        quota = engine::tenant_quota_of(written->root());
        live = true;
        for (Waiting& waiting : granted) {
            answer(waiting, {});
        }
        book.known = quota;
    }
}

}  // namespace ossa::webhook
