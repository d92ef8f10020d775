#include "webhook/admission_service.hpp"

#include <mutex>

#include "base/bug.hpp"
#include "kube/types/duration.hpp"
#include "net/log.hpp"

namespace ossa::webhook {

using engine::Decision;
using engine::Door;
using engine::Verdict;

namespace {

// Above this a review is judged alone in the process and its memory is given back: large ones are rare and cost up to
// 30 MB each while they are judged.
constexpr std::size_t large_bytes = std::size_t{256} << 10;
std::mutex large_lane;

// Less than this before the API server gives up, an answer comes too late; nothing more is written for a review when
// less than the second is left.
constexpr std::chrono::milliseconds deadline_margin{200};
constexpr std::chrono::milliseconds write_margin{500};
constexpr std::chrono::seconds timeout_when_untold{10};  // the API server's own

struct Outcome {
    Verdict verdict;
    std::string_view reason;
};
constexpr std::array<Outcome, 9> outcome_words{{{Verdict::allowed, ""},
                                                {Verdict::denied, "Invalid"},
                                                {Verdict::denied, "BadRequest"},
                                                {Verdict::denied, "InternalError"},
                                                {Verdict::denied, "Timeout"},
                                                {Verdict::denied, "Forbidden"},
                                                {Verdict::denied, "TooManyRequests"},
                                                {Verdict::denied, "Conflict"},
                                                {Verdict::malformed, "BadRequest"}}};

std::size_t index_of(const Decision& decision) {
    for (std::size_t i = 0; i < outcome_words.size(); ++i) {
        if (outcome_words[i].verdict == decision.verdict && outcome_words[i].reason == decision.reason) {
            return i;
        }
    }
    OSSA_BUG_IF(true, "every verdict and reason is listed in outcome_words");
    return 0;
}

// The API server puts its own time limit into the URL: ?timeout=5s.
std::optional<net::SteadyPoint> caller_gives_up(const net::Request& request) {
    const auto text = request.parameter("timeout");
    if (!text) {
        return {};
    }
    const auto timeout = kube::parse_duration(*text);
    return timeout ? std::optional{request.arrived + *timeout} : std::nullopt;
}

bool is_too_late(const net::Request& request) {
    const auto end = caller_gives_up(request);
    return end && std::chrono::steady_clock::now() > *end - deadline_margin;
}

}  // namespace

AdmissionService::AdmissionService(unsigned workers, engine::Policy policy, std::size_t body_bytes_max,
                                   net::Metrics& metrics, QuotaLedger* ledger)
    : policy_(std::move(policy)), ledger_(ledger), limits_{.bytes_max = body_bytes_max}, scratch_(workers) {
    for (std::size_t d = 0; d < engine::door_count; ++d) {
        const std::string path{engine::path_of(static_cast<Door>(d))};
        latency_[d] =
            &metrics.histogram("ossa_admission_duration_seconds",
                               "From the first byte of a review to its answer being ready.", {{"path", path}});
        for (std::size_t op = 0; op < operations; ++op) {
            for (std::size_t o = 0; o < outcomes; ++o) {
                requests_[d][op][o] =
                    &metrics.counter("ossa_admission_requests_total", "Reviews answered.",
                                     {{"path", path},
                                      {"operation", std::string(kube::to_string(static_cast<kube::Operation>(op)))},
                                      {"verdict", std::string(engine::to_string(outcome_words[o].verdict))},
                                      {"reason", std::string(outcome_words[o].reason)}});
            }
        }
    }
    metrics.read("ossa_bug_total", "Mistakes of this program that were caught; each request concerned was denied.",
                 net::Metrics::ReadAs::counter, [] { return static_cast<double>(bug_count()); });
}

std::vector<net::Route> AdmissionService::routes() {
    std::vector<net::Route> out;
    for (std::size_t d = 0; d < engine::door_count; ++d) {
        const Door door = static_cast<Door>(d);
        out.push_back({net::Method::post, std::string(engine::path_of(door)), "application/json",
                       [this, door](net::Exchange& exchange) { answer(door, exchange); }});
    }
    return out;
}

Decision AdmissionService::decide(Door door, const net::Request& request, std::string& answer) {
    if (is_too_late(request)) {
        return engine::refuse_late(request.body, answer);
    }
    engine::Scratch& scratch = scratch_[request.worker];
    const bool large = request.body.size() > large_bytes;
    std::unique_lock lane(large_lane, std::defer_lock);
    if (large) {
        lane.lock();
    }
    Decision decision = engine::admit(door, request.body, json::Padding::present, limits_, policy_, scratch, answer);
    if (large) {
        scratch = engine::Scratch{};
    }
    return decision;
}

void AdmissionService::answer(Door door, net::Exchange& exchange) {
    const net::Request& request = exchange.request();
    net::Response& response = exchange.response();
    Decision decision;
    try {
        decision = decide(door, request, response.body);
    } catch (const std::exception& e) {
        // The one boundary of a request: whatever went wrong inside, the API server gets a denial under its uid.
        count_bug();
        OSSA_LOG(error, "a review could not be judged: this is a bug of ours", {"what", std::string_view{e.what()}});
        response.body.clear();
        scratch_[request.worker] = engine::Scratch{};
        decision = engine::fail_closed(request.body, response.body);
    }
    response.status = decision.verdict == Verdict::malformed ? 400 : 200;
    if (decision.ask) {
        return ask_quota(door, exchange, std::move(decision));
    }
    count(door, decision, request.arrived);
}

void AdmissionService::ask_quota(Door door, net::Exchange& exchange, Decision decision) {
    struct Pending {
        net::Responder responder;
        Decision decision;
    };
    const net::SteadyPoint arrived = exchange.request().arrived;
    const net::SteadyPoint give_up =
        caller_gives_up(exchange.request()).value_or(arrived + timeout_when_untold) - write_margin;
    engine::QuotaAsk ask = *decision.ask;
    auto pending = std::make_shared<Pending>(Pending{exchange.defer(), std::move(decision)});
    ledger_->ask(std::move(ask), give_up, [this, door, arrived, pending](const LedgerAnswer& answer) {
        Decision& decided = pending->decision;
        std::string& body = pending->responder.response().body;
        if (answer.refusal) {
            engine::refuse(decided, *answer.refusal, body);
        } else if (!answer.tenant.empty()) {
            engine::give_tenant(decided, answer.tenant, body);
        }
        count(door, decided, arrived);
        std::move(pending->responder).send();
    });
}

void AdmissionService::count(Door door, const Decision& decision, net::SteadyPoint arrived) {
    const auto d = static_cast<std::size_t>(door);
    requests_[d][static_cast<std::size_t>(decision.operation)][index_of(decision)]->add();
    latency_[d]->observe(std::chrono::steady_clock::now() - arrived);
    const auto fields = [&](net::LogLevel level, std::string_view message) {
        net::log(level, message,
                 {{"path", engine::path_of(door)},
                  {"uid", decision.uid},
                  {"operation", kube::to_string(decision.operation)},
                  {"namespace", decision.namespace_},
                  {"name", decision.name},
                  {"user", decision.user},
                  {"dry_run", decision.dry_run},
                  {"verdict", engine::to_string(decision.verdict)},
                  {"reason", decision.reason},
                  {"rules", decision.rules},
                  {"findings", decision.findings},
                  {"warnings", decision.warnings},
                  {"patched", decision.patched}});
    };
    if (decision.verdict != Verdict::allowed) {
        if (net::log_enabled(net::LogLevel::info)) {
            fields(net::LogLevel::info, "denied");
        }
    } else if (net::log_enabled(net::LogLevel::debug)) {
        fields(net::LogLevel::debug, "allowed");
    }
}

}  // namespace ossa::webhook
