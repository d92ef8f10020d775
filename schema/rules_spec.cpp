// Rules over how an Agent runs on Kubernetes: workload, scaling, rollout, mcp.
#include <algorithm>
#include <charconv>

#include "kube/types/duration.hpp"
#include "kube/types/quantity.hpp"
#include "schema/rule_report.hpp"
#include "schema/rules.hpp"

namespace ossa::schema {
namespace {

using json::Value;
using kube::CauseType;
using kube::Quantity;

// A Kubernetes quantity may be written as a string or as a number.
tl::expected<Quantity, std::string_view> quantity_of(Value value) noexcept {
    if (const auto text = value.as_string()) {
        return Quantity::parse(*text);
    }
    if (const auto whole = value.as_int64()) {
        return Quantity::of(*whole);
    }
    if (const auto number = value.as_double()) {
        std::array<char, 32> text{};
        const auto end = std::to_chars(text.data(), text.data() + text.size(), *number);
        return Quantity::parse({text.data(), static_cast<std::size_t>(end.ptr - text.data())});
    }
    return tl::unexpected(std::string_view{"must be a quantity"});
}

void check_env(Value env, const Where& at, Report& report) {
    NameSet names;
    std::size_t index = 0;
    for (const Value item : env.elements()) {
        if (const Value name = item.at("name"); name.is_string()) {
            names.add(name, 0, index);
        }
        ++index;
    }
    names.each_repeat([&](const NameSet::Entry& repeat, const NameSet::Entry& first) {
        if (!report.full()) {
            const Where item_at{at, std::size_t{repeat.index}};
            report.add(CauseType::duplicate, "agent/duplicate-env", item_at.pointer({"name"}), names.value_of(repeat),
                       "is already set by item " + std::to_string(first.index));
        }
    });
}

// A share of requests: "2%" or "0.02", from nothing to all. Digits only, so that a bound is compared exactly.
bool is_error_rate(std::string_view text) noexcept {
    const bool percent = text.ends_with('%');
    if (percent) {
        text.remove_suffix(1);
    }
    const std::size_t point = text.find('.');
    std::string_view whole = text.substr(0, point);
    const std::string_view fraction = point == std::string_view::npos ? "" : text.substr(point + 1);
    if (whole.empty() || (point != std::string_view::npos && fraction.empty()) ||
        whole.find_first_not_of("0123456789") != std::string_view::npos ||
        fraction.find_first_not_of("0123456789") != std::string_view::npos) {
        return false;
    }
    const std::string_view all = percent ? "100" : "1";
    const bool more = fraction.find_first_not_of('0') != std::string_view::npos;
    whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
    if (whole.size() != all.size()) {
        return whole.size() < all.size();
    }
    const int order = whole.compare(all);
    return order < 0 || (order == 0 && !more);
}

void check_pause(Value pause, const Where& step_at, Report& report) {
    const auto text = pause.as_string();
    if (!text) {
        return;
    }
    const auto duration = kube::parse_duration(*text);
    if (!duration) {
        report.add(CauseType::invalid, "agent/rollout-pause", step_at.pointer({"pause"}), pause, duration.error(),
                   R"(for example "5m")");
    } else if (duration->count() <= 0) {
        report.add(CauseType::invalid, "agent/rollout-pause", step_at.pointer({"pause"}), pause,
                   "must be longer than nothing", R"(for example "5m")");
    }
}

void check_steps(Value steps, const Where& at, Report& report) {
    std::int64_t highest = -1;
    bool reaches_all = false;
    bool is_clear = true;  // no step that the schema refuses: then what the weights come to is known
    std::size_t index = 0;
    for (const Value step : steps.elements()) {
        const Where step_at{at, index++};
        if (!step.is_object()) {
            is_clear = false;
            continue;
        }
        const auto [set_weight, pause] = pick(step, "setWeight", "pause");
        if (set_weight.exists() == pause.exists()) {
            report.add(CauseType::invalid, "agent/rollout-step", step_at.pointer(), step,
                       set_weight.exists() ? "must not have both setWeight and pause" : "must have setWeight or pause",
                       "make each of them a step of its own");
        }
        check_pause(pause, step_at, report);
        if (!set_weight.exists()) {
            continue;
        }
        const auto weight = set_weight.as_int64();
        if (!weight || *weight < 0 || *weight > 100) {
            is_clear = false;
            continue;
        }
        if (*weight < highest) {
            report.add(CauseType::invalid, "agent/rollout-weights", step_at.pointer({"setWeight"}), set_weight,
                       "must not be below the weight " + std::to_string(highest) + " of an earlier step");
        }
        highest = std::max(highest, *weight);
        reaches_all = reaches_all || *weight == 100;
    }
    if (!steps.empty() && is_clear && !reaches_all) {
        report.add(CauseType::invalid, "agent/rollout-weights", at.pointer(), steps,
                   "must have a step with setWeight: 100, else the new image never gets all requests",
                   "end the list with {setWeight: 100}");
    }
}

void check_rollout_metrics(Value metrics, const Where& at, Report& report) {
    constexpr std::array<std::string_view, 3> template_names{"requests", "errorRate", "p99"};
    const Value preset = metrics.at("preset");
    const std::array<Value, 3> templates = pick(metrics, "requests", "errorRate", "p99");
    const auto given = static_cast<std::size_t>(
        std::count_if(templates.begin(), templates.end(), [](Value value) { return value.exists(); }));
    if (preset.exists() && given > 0) {
        report.add(CauseType::forbidden, "agent/rollout-metrics", at.pointer({"preset"}), preset,
                   "cannot be set beside queries of your own (requests, errorRate, p99)",
                   "take out the preset or the queries");
        return;
    }
    if (given == 0 || given == templates.size()) {
        return;
    }
    for (std::size_t i = 0; i < templates.size(); ++i) {
        if (!templates[i].exists()) {
            report.missing("agent/rollout-metrics", at, template_names[i],
                           "queries of your own must be all three: requests, errorRate and p99");
        }
    }
}

}  // namespace

void check_quantities(Value amounts, const Where& at, std::string_view rule, Report& report) {
    for (const json::Member member : amounts.members()) {
        if (report.full()) {
            return;
        }
        const auto quantity = quantity_of(member.value);
        if (!quantity) {
            report.add(CauseType::invalid, rule, at.pointer({member.name}), member.value, quantity.error(),
                       quantity_hint(member.value.string_or("")));
        } else if (quantity->sign() < 0) {
            report.add(CauseType::invalid, rule, at.pointer({member.name}), member.value, "must not be below 0");
        }
    }
}

void check_workload(Value workload, const Where& at, Report& report) {
    constexpr std::string_view rule = "agent/workload-resources";
    const auto [env, resources] = pick(workload, "env", "resources");
    if (env.is_array()) {
        check_env(env, Where{at, "env"}, report);
    }
    if (!resources.is_object()) {
        return;
    }
    const Where resources_at{at, "resources"};
    const auto [requests, limits] = pick(resources, "requests", "limits");
    for (const auto& [name, amounts] : {std::pair{"requests", requests}, std::pair{"limits", limits}}) {
        if (amounts.exists() && !amounts.is_object()) {
            report.add(CauseType::type_invalid, rule, resources_at.pointer({name}), amounts,
                       "must be an object of quantities", "for example {cpu: 500m, memory: 512Mi}");
        }
        check_quantities(amounts, Where{resources_at, name}, rule, report);
    }
    // The search is quadratic; real lists hold a handful, and the API server judges longer ones at the Pod.
    constexpr std::size_t compared_max = 64;
    if (requests.size() > compared_max || limits.size() > compared_max) {
        return;
    }
    for (const json::Member request : requests.members()) {
        const Value limit = limits.at(request.name);
        if (!limit.exists()) {
            continue;
        }
        const auto wanted = quantity_of(request.value);
        const auto most = quantity_of(limit);
        if (wanted && most && *wanted > *most) {
            report.add(CauseType::invalid, rule, resources_at.pointer({"requests", request.name}), request.value,
                       "must not be more than the limit " + json::excerpt(limit));
        }
    }
}

void check_scaling(Value scaling, const Where& at, Report& report) {
    if (!scaling.is_object()) {
        return;
    }
    const auto [min, max, metrics, metric, target] =
        pick(scaling, "minReplicas", "maxReplicas", "metrics", "metric", "target");
    const auto fewest = min.as_int64();
    const auto most = max.as_int64();
    if (fewest && most && *fewest > *most) {
        report.add(CauseType::invalid, "agent/scaling-range", at.pointer({"minReplicas"}), min,
                   "must not be more than maxReplicas " + std::to_string(*most));
    }
    if (metric.exists() && !target.exists()) {
        report.missing("agent/scaling-metric", at, "target", "the short form needs metric and target",
                       "for example target: 10");
    } else if (target.exists() && !metric.exists()) {
        report.missing("agent/scaling-metric", at, "metric", "the short form needs metric and target",
                       "set metric to queueDepth or gpuUtilization");
    } else if (!metric.exists() && (!metrics.exists() || (metrics.is_array() && metrics.empty()))) {
        report.missing("agent/scaling-metric", at, "metrics", "scaling needs a metric to go by",
                       "give metric and target, or metrics as autoscaling/v2 has them");
    }
}

void check_rollout(Value rollout, const Where& at, Report& report) {
    if (!rollout.is_object()) {
        return;
    }
    const auto [strategy, steps, rollback, metrics] = pick(rollout, "strategy", "steps", "rollback", "metrics");
    const bool is_canary = strategy.string_or("") == "Canary";
    if (is_canary && (!steps.exists() || (steps.is_array() && steps.empty()))) {
        report.missing("agent/canary", at, "steps", "strategy Canary needs steps",
                       R"(for example [{setWeight: 20}, {pause: 5m}, {setWeight: 100}])");
    }
    if (steps.is_array()) {
        check_steps(steps, Where{at, "steps"}, report);
    }
    if (is_canary && !rollback.exists()) {
        report.missing("agent/canary", at, "rollback",
                       "strategy Canary needs rollback with maxErrorRate, maxP99LatencyMs and minRequestSample");
    }
    if (rollback.is_object()) {
        constexpr std::array<std::string_view, 3> limit_names{"maxErrorRate", "maxP99LatencyMs", "minRequestSample"};
        const std::array<Value, 3> limits = pick(rollback, "maxErrorRate", "maxP99LatencyMs", "minRequestSample");
        const Where rollback_at{at, "rollback"};
        for (std::size_t i = 0; is_canary && i < limits.size(); ++i) {
            if (!limits[i].exists()) {
                report.missing("agent/canary", rollback_at, limit_names[i], "strategy Canary needs it");
            }
        }
        if (const auto rate = limits[0].as_string(); rate && !is_error_rate(*rate)) {
            report.add(CauseType::invalid, "agent/rollout-error-rate", rollback_at.pointer({"maxErrorRate"}), limits[0],
                       "must be a share between 0% and 100%", R"(for example "2%" or "0.02")");
        }
    }
    if (metrics.is_object()) {
        check_rollout_metrics(metrics, Where{at, "metrics"}, report);
    }
}

void check_mcp(Value mcp, const Where& at, std::string_view namespace_name, Report& report) {
    const auto [tools, headers] = pick(mcp, "tools", "headersFrom");
    if (tools.is_array()) {
        const Where tools_at{at, "tools"};
        NameSet names;
        std::size_t index = 0;
        for (const Value name : tools.elements()) {
            if (name.is_string()) {
                names.add(name, 0, index);
            }
            ++index;
        }
        names.each_repeat([&](const NameSet::Entry& repeat, const NameSet::Entry& first) {
            if (!report.full()) {
                const Where item_at{tools_at, std::size_t{repeat.index}};
                report.add(CauseType::duplicate, "agent/duplicate-tool", item_at.pointer(), names.value_of(repeat),
                           "is already item " + std::to_string(first.index));
            }
        });
    }
    const Where headers_at{at, "headersFrom"};
    std::size_t index = 0;
    for (const Value header : headers.elements()) {
        const Where header_at{headers_at, index++};
        const Value other = header.at("secretKeyRef").at("namespace");
        if (const auto text = other.as_string(); text && (namespace_name.empty() || *text != namespace_name)) {
            report.add(CauseType::forbidden, "agent/mcp-headers", header_at.pointer({"secretKeyRef", "namespace"}),
                       other, "only Secrets of the agent's own namespace are read", "take the member out");
        }
    }
}

}  // namespace ossa::schema
