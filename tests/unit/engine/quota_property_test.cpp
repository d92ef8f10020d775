// The books under a world that interleaves at random: API servers that call, store, conflict, call again and give up;
// webhooks that write late; two controllers with Stores that lag and clocks of their own; users who create, change,
// move and delete Agents and quotas. In every state: nothing is stored beyond a limit, and the books cover what is
// stored.
//
// In step with tests/model/quota_model.py, which is exhaustive but small and has one dimension and no clock. Each rule
// left out must be found here as well.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <utility>
#include <variant>

#include "engine/quota.hpp"

namespace ossa::engine {
namespace {

using Time = ReservationAges::Time;
using std::chrono::seconds;

enum class Broken : std::uint8_t {
    nothing,
    compare_and_set,  // a recount is written over whatever is there
    wait,             // the first list drops
    renew,            // asking again leaves the age alone
    consistent_list,  // what the Store does not show is dropped
    counted_version,  // a recount may come from any Store
    first_count,      // a new quota is taken to be unused
    finalizer,        // a quota goes with its reservations
    late_storing,     // the API server stores after the wait: the assumption itself
};

constexpr Time drop_after = seconds(90);
constexpr Time store_within = seconds(34);
constexpr std::size_t tenants = 2;
constexpr std::size_t names = 3;
constexpr QuotaLimits limits{.agents = 2, .replicas = 4, .gpus = 3};

struct Agent {
    std::string uid;
    std::size_t tenant = 0;
    Demand demand;
    std::uint64_t version = 0;
};

struct Event {
    std::uint64_t version = 0;
    std::size_t name = 0;
    Agent agent;
    bool deleted = false;
};

// The part of an API server that the protocol leans on: writes of one object are compared and set.
class QuotaObject {
  public:
    std::string text;  // empty: there is none

    json::Document parsed() const { return std::move(*json::Document::from(text)); }
    TenantQuota books() const { return tenant_quota_of(parsed().root()); }

    // False on a conflict.
    bool patch(std::uint64_t& revision, const std::string& merge_patch, bool compare = true) {
        const json::Document wanted = std::move(*json::Document::from(merge_patch));
        if (text.empty()) {
            return false;
        }
        const json::Document now = parsed();
        const auto version = [](const json::Document& of) { return of.root().at("metadata").at("resourceVersion"); };
        if (compare && version(now).string_or("") != version(wanted).string_or("?")) {
            return false;
        }
        const json::Document merged = std::move(*json::Document::from(json::merge_patch(now.root(), wanted.root())));
        set_metadata(merged, R"("resourceVersion":")" + std::to_string(++revision) + '"');
        return true;
    }
    void set_metadata(const json::Document& of, const std::string& members) {
        const json::Document patch = std::move(*json::Document::from(R"({"metadata":{)" + members + "}}"));
        text = json::merge_patch(of.root(), patch.root());
    }
};

class World {
  public:
    World(std::uint64_t seed, Broken broken) : random_(seed), broken_(broken) {
        if (at_most(1) == 1) {  // Agents from before the quotas
            for (std::size_t name = 0; name < 2; ++name) {
                put(name, Agent{.uid = uid(), .tenant = name % tenants, .demand = {1, 1, 0}});
            }
        }
        for (std::size_t tenant = 0; tenant < tenants; ++tenant) {
            make_quota(tenant);
        }
        for (Controller& controller : controllers_) {
            restart(controller);
        }
    }

    // What is wrong, if anything is, after so many steps.
    std::optional<std::string> run(std::size_t steps) {
        for (std::size_t i = 0; i < steps; ++i) {
            step();
            if (auto wrong = violation()) {
                return wrong;
            }
        }
        return {};
    }

  private:
    struct Called {};
    struct Read {  // a webhook has read the quota
        TenantQuota quota;
        std::string object;
        std::optional<Observation> listed;
    };
    struct Admitted {};
    struct Request {
        std::string uid;
        std::size_t name = 0;
        std::size_t tenant = 0;
        Demand demand;
        std::optional<Agent> old;
        Time called{};
        std::variant<Called, Read, Admitted> phase;
    };
    struct Controller {
        Time clock_offset{};  // its steady clock began at another moment
        std::size_t at = 0;   // of the events
        std::array<std::optional<Agent>, names> store;
        Sightings seen;
        ReservationAges ages;
        struct Work {
            std::size_t tenant = 0;
            TenantQuota quota;
            std::string object;
            std::vector<ReservationAsk> droppable;
            bool listing = false;
            std::optional<std::pair<Observation, Sightings>> observed;
        };
        std::optional<Work> work;
    };

    std::uint64_t at_most(std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(0, most)(random_); }
    std::string uid() { return "u" + std::to_string(++uids_); }
    std::string tenant_name(std::size_t tenant) { return "t" + std::to_string(tenant); }

    void put(std::size_t name, Agent agent) {
        agent.version = ++revision_;
        stored_[name] = agent;
        events_.push_back({revision_, name, std::move(agent), false});
    }
    void erase(std::size_t name) {
        Agent agent = *stored_[name];
        agent.version = ++revision_;
        stored_[name].reset();
        events_.push_back({revision_, name, std::move(agent), true});
    }

    void make_quota(std::size_t tenant) {
        const std::string version = std::to_string(++revision_);
        quotas_[tenant].text = R"({"metadata":{"name":")" + tenant_name(tenant) + R"(","uid":")" + uid() +
                               R"(","generation":1,"resourceVersion":")" + version +
                               R"("},"spec":{"maxAgents":2,"maxTotalReplicas":4,"maxGPUs":3})" +
                               (broken_ == Broken::first_count ? R"(,"status":{"observedGeneration":1}})" : "}");
    }

    template <class Agents>
    Demand used_by(std::size_t tenant, const Agents& agents) {
        Demand out;
        for (const auto& agent : agents) {
            if (agent && agent->tenant == tenant) {
                out = sum(out, agent->demand);
            }
        }
        return out;
    }

    Observation list(std::size_t tenant) {
        return {.used = used_by(tenant, stored_), .through = revision_, .consistent = true};
    }

    // Every world prefers other steps, so that between them they go to all corners.
    std::discrete_distribution<int> tempers() {
        static constexpr std::array<double, 4> weights{1, 4, 16, 40};
        std::array<double, 7> out{};
        for (double& weight : out) {
            weight = weights[at_most(3)];
        }
        out[6] = 40;
        return {out.begin(), out.end()};
    }

    void step() {
        switch (next_(random_)) {
            case 0: return user();
            case 1: return users_of_quotas();
            case 2: return pass_time();
            case 3: return see(controllers_[at_most(1)], 1 + at_most(2));
            case 4: return control(controllers_[at_most(1)]);
            case 5: return at_most(9) == 0 ? restart(controllers_[at_most(1)]) : void();
            default: return requests_.empty() ? user() : proceed(at_most(requests_.size() - 1));
        }
    }

    void user() {
        const std::size_t name = at_most(names - 1);
        const std::optional<Agent>& old = stored_[name];
        if (old && at_most(3) == 0) {
            return erase(name);
        }
        if (requests_.size() >= 5) {
            return;
        }
        if (abandoned_ && at_most(1) == 0) {  // a client tries again what it had no answer to
            Request again = *std::exchange(abandoned_, {});
            again.uid = again.old ? again.uid : uid();
            again.old = again.old ? stored_[again.name] : again.old;
            again.called = now_;
            again.phase = Called{};
            if (again.old.has_value() == stored_[again.name].has_value() &&
                (!again.old || again.old->uid == again.uid)) {
                requests_.push_back(std::move(again));
            }
            return;
        }
        Request request{.uid = old ? old->uid : uid(),
                        .name = name,
                        .tenant = at_most(tenants - 1),
                        .demand = {},
                        .old = old,
                        .called = now_,
                        .phase = Called{}};
        request.demand = {1, static_cast<std::int64_t>(at_most(3)), static_cast<std::int64_t>(at_most(2))};
        if (old && at_most(2) != 0) {
            request.tenant = old->tenant;
        }
        requests_.push_back(std::move(request));
    }

    void users_of_quotas() {
        const std::size_t tenant = at_most(tenants - 1);
        QuotaObject& quota = quotas_[tenant];
        if (quota.text.empty()) {
            return make_quota(tenant);
        }
        if (at_most(4) != 0) {
            return;
        }
        const TenantQuota books = quota.books();
        if (!books.held || broken_ == Broken::finalizer) {
            quota.text.clear();
        } else if (!books.deleting) {
            quota.set_metadata(quota.parsed(),
                               R"("deletionTimestamp":"then","resourceVersion":")" + std::to_string(++revision_) + '"');
        }
    }

    void pass_time() {
        static constexpr std::array<std::int64_t, 5> steps{1, 10, 30, 60, 100};
        now_ += seconds(steps[at_most(4)]);
        if (broken_ == Broken::late_storing) {
            return;
        }
        std::erase_if(requests_, [&](const Request& request) {
            const bool over = now_ - request.called > store_within;
            if (over) {
                abandoned_ = request;
            }
            return over;
        });
    }

    // The API server's and the webhook's next step of a request.
    void proceed(std::size_t at) {
        Request& request = requests_[at];
        const auto drop = [&] { requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(at)); };
        if (at_most(patience_) == 0) {
            abandoned_ = request;
            return drop();  // given up, refused by another webhook, or the connection broke
        }
        if (std::holds_alternative<Admitted>(request.phase)) {
            const std::optional<Agent>& current = stored_[request.name];
            const bool lands = request.old ? current && current->version == request.old->version : !current;
            if (lands) {
                put(request.name, Agent{.uid = request.uid, .tenant = request.tenant, .demand = request.demand});
                return drop();
            }
            if (!request.old || !current || current->uid != request.uid) {
                return drop();
            }
            request.old = current;  // the write conflicted: judged again
            request.called = now_;
            request.phase = Called{};
            return;
        }
        const bool moves = !request.old || request.old->tenant != request.tenant;
        const Demand wanted = moves ? request.demand : rise(request.old->demand, request.demand);
        if (wanted.is_nothing()) {
            request.phase = Admitted{};
            return;
        }
        QuotaObject& quota = quotas_[request.tenant];
        if (std::holds_alternative<Called>(request.phase)) {
            if (quota.text.empty()) {
                return drop();
            }
            request.phase = Read{quota.books(), quota.text, {}};
            return;
        }
        Read& read = std::get<Read>(request.phase);
        const auto again = [&] { request.phase = Called{}; };
        switch (readiness_of(read.quota)) {
            case Readiness::deleting: return drop();
            case Readiness::hold_first: {
                const json::Document object = std::move(*json::Document::from(read.object));
                quota.patch(revision_, hold_patch(object.root()));
                return again();
            }
            case Readiness::count_first:
                if (!read.listed) {
                    read.listed = list(request.tenant);
                    return;
                }
                first_count(read.quota, *read.listed);
                break;
            case Readiness::ready: break;
        }
        const Charge charge{.uid = request.uid,
                            .name = std::to_string(request.name),
                            .from_version = request.old ? std::to_string(request.old->version) : "",
                            .rise = wanted,
                            .replicas = request.demand.replicas};
        TenantQuota books = read.quota;
        if (reserve(books, charge).outcome != Reserved::granted) {
            return drop();
        }
        if (broken_ == Broken::renew) {
            for (Reservation& reservation : books.reservations) {
                reservation.asked_version = "1";
            }
        }
        if (!quota.patch(revision_, status_patch(books))) {
            return again();
        }
        request.phase = Admitted{};
    }

    void see(Controller& controller, std::size_t events) {
        for (; events > 0 && controller.at < events_.size(); --events) {
            const Event& event = events_[controller.at++];
            controller.seen[event.agent.uid] = event.version;
            controller.store[event.name] = event.deleted ? std::nullopt : std::optional(event.agent);
        }
    }

    void restart(Controller& controller) {
        controller = Controller{};
        controller.clock_offset = seconds(at_most(1'000'000));
        controller.store = stored_;
        controller.at = events_.size();
        for (const auto& agent : stored_) {
            if (agent) {
                controller.seen[agent->uid] = agent->version;
            }
        }
    }

    void control(Controller& controller) {
        const Time clock = now_ + controller.clock_offset;
        if (!controller.work) {
            const std::size_t tenant = at_most(tenants - 1);
            if (quotas_[tenant].text.empty()) {
                return;
            }
            controller.work = Controller::Work{.tenant = tenant,
                                               .quota = quotas_[tenant].books(),
                                               .object = quotas_[tenant].text,
                                               .droppable = {},
                                               .listing = at_most(1) == 0,
                                               .observed = {}};
            Controller::Work& work = *controller.work;
            controller.ages.note(work.quota, clock);
            work.droppable =
                controller.ages.droppable(work.quota.uid, clock, broken_ == Broken::wait ? Time{} : drop_after);
            return;
        }
        Controller::Work& work = *controller.work;
        if (!work.observed) {
            observe(controller, work);
            return;
        }
        QuotaObject& object = quotas_[work.tenant];
        const auto& [observation, seen] = *work.observed;
        const bool compare = broken_ != Broken::compare_and_set;
        if (!work.quota.observed_generation) {
            if (observation.consistent) {
                first_count(work.quota, observation);
                object.patch(revision_, status_patch(work.quota));
            }
        } else if (recount(work.quota, observation, seen, work.droppable) == Recounted::changed) {
            if ((compare || (!object.text.empty() && object.books().uid == work.quota.uid)) &&
                object.patch(revision_, status_patch(work.quota), compare)) {
                controller.ages.note(work.quota, clock);
            }
        } else if (work.quota.deleting && work.quota.reservations.empty() && work.quota.held) {
            const json::Document before = std::move(*json::Document::from(work.object));
            if (object.patch(revision_, release_patch(before.root()))) {
                object.text.clear();
                controller.ages.forget(work.quota.uid);
            }
        }
        controller.work.reset();
    }

    void observe(Controller& controller, Controller::Work& work) {
        if (work.listing) {
            Sightings seen;
            for (const auto& agent : stored_) {
                if (agent) {
                    seen[agent->uid] = agent->version;
                }
            }
            work.observed.emplace(list(work.tenant), std::move(seen));
            return;
        }
        Observation observation{.used = used_by(work.tenant, controller.store),
                                .through = controller.at == 0 ? 0 : events_[controller.at - 1].version};
        if (broken_ == Broken::counted_version) {
            observation.through = std::max(observation.through, work.quota.counted_version);
        }
        observation.consistent = broken_ == Broken::consistent_list;
        work.observed.emplace(observation, controller.seen);
    }

    std::optional<std::string> violation() {
        for (std::size_t tenant = 0; tenant < tenants; ++tenant) {
            const Demand demand = used_by(tenant, stored_);
            const Demand most{*limits.agents, *limits.replicas, *limits.gpus};
            if (!rise(most, demand).is_nothing()) {
                return tenant_name(tenant) + " is beyond its limit";
            }
            if (quotas_[tenant].text.empty()) {
                continue;
            }
            const TenantQuota books = quotas_[tenant].books();
            if (books.observed_generation &&
                !rise(sum(books.used, charge_of(books.reservations)), demand).is_nothing()) {
                return tenant_name(tenant) + " stores more than its books say: " + quotas_[tenant].text;
            }
        }
        return {};
    }

    std::mt19937_64 random_;
    Broken broken_;
    std::discrete_distribution<int> next_ = tempers();
    std::uint64_t patience_ = at_most(1) == 0 ? 6 : 30;
    Time now_ = seconds(1000);
    std::uint64_t revision_ = 10;
    std::uint64_t uids_ = 0;
    std::array<std::optional<Agent>, names> stored_;
    std::vector<Event> events_;
    std::array<QuotaObject, tenants> quotas_;
    std::vector<Request> requests_;
    std::optional<Request> abandoned_;
    std::array<Controller, 2> controllers_;
};

TEST(QuotaWorld, NoInterleavingBreaksTheInvariant) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        const auto wrong = World(seed, Broken::nothing).run(1500);
        ASSERT_FALSE(wrong) << "seed " << seed << ": " << *wrong;
    }
}

class QuotaWorldWithout : public ::testing::TestWithParam<Broken> {};

TEST_P(QuotaWorldWithout, ARuleIsFoundOut) {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        if (World(seed, GetParam()).run(1500)) {
            return;
        }
    }
    FAIL() << "no violation was found, so the world does not try hard enough";
}

INSTANTIATE_TEST_SUITE_P(EachRule, QuotaWorldWithout,
                         ::testing::Values(Broken::compare_and_set, Broken::wait, Broken::renew,
                                           Broken::consistent_list, Broken::counted_version, Broken::first_count,
                                           Broken::finalizer, Broken::late_storing));

}  // namespace
}  // namespace ossa::engine
