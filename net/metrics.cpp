#include "net/metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <variant>

#include "base/bug.hpp"

namespace ossa::net {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds default_bounds[] = {
    25us, 50us, 100us, 250us, 500us, 1ms, 2500us, 5ms, 10ms, 25ms, 50ms, 100ms, 250ms, 500ms, 1s, 2500ms, 5s, 10s,
};

struct Reader {
    std::function<double()> value;
};

// unique_ptr: handles stay where they are when the map grows.
using Cell = std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Histogram>, Reader>;

struct Family {
    std::string help;
    prometheus::MetricType type;
    std::map<Labels, Cell> cells;
};

double seconds(std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e9;
}

prometheus::ClientMetric collect(const Labels& labels, const Cell& cell, prometheus::MetricType type) {
    prometheus::ClientMetric out;
    for (const auto& [name, value] : labels) {
        out.label.push_back({name, value});
    }
    if (const auto* counter = std::get_if<std::unique_ptr<Counter>>(&cell)) {
        out.counter.value = static_cast<double>((*counter)->value());
    } else if (const auto* gauge = std::get_if<std::unique_ptr<Gauge>>(&cell)) {
        out.gauge.value = static_cast<double>((*gauge)->value());
    } else if (const auto* reader = std::get_if<Reader>(&cell)) {
        const double value = reader->value();
        if (type == prometheus::MetricType::Counter) {
            out.counter.value = value;
        } else {
            out.gauge.value = value;
        }
    } else {
        const Histogram& histogram = *std::get<std::unique_ptr<Histogram>>(cell);
        std::uint64_t cumulative = 0;
        const auto& bounds = histogram.bounds_ns();
        for (std::size_t i = 0; i <= bounds.size(); ++i) {
            cumulative += histogram.bucket(i);
            prometheus::ClientMetric::Bucket bucket;
            bucket.cumulative_count = cumulative;
            bucket.upper_bound = i < bounds.size() ? seconds(bounds[i]) : std::numeric_limits<double>::infinity();
            out.histogram.bucket.push_back(bucket);
        }
        out.histogram.sample_count = cumulative;
        out.histogram.sample_sum = seconds(histogram.sum_ns());
    }
    return out;
}

}  // namespace

Histogram::Histogram(std::span<const std::chrono::nanoseconds> bounds)
    : buckets_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds.size() + 1)) {
    bounds_.reserve(bounds.size());
    for (const auto bound : bounds) {
        bounds_.push_back(bound.count());
    }
    OSSA_BUG_IF(!std::is_sorted(bounds_.begin(), bounds_.end()), "bucket bounds are written in rising order");
}

void Histogram::observe(std::chrono::nanoseconds duration) noexcept {
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), duration.count());
    buckets_[static_cast<std::size_t>(at - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(duration.count(), std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const noexcept {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i <= bounds_.size(); ++i) {
        total += bucket(i);
    }
    return total;
}

std::span<const std::chrono::nanoseconds> request_buckets() noexcept {
    return default_bounds;
}

struct Metrics::State {
    mutable std::mutex mutex;
    std::map<std::string, Family, std::less<>> families;

    Cell& cell(std::string_view name, std::string_view help, prometheus::MetricType type, const Labels& labels,
               const std::function<Cell()>& make) {
        const std::lock_guard lock{mutex};
        auto family = families.find(name);
        if (family == families.end()) {
            family = families.emplace(std::string{name}, Family{std::string{help}, type, {}}).first;
        }
        OSSA_BUG_IF(family->second.type != type, "one metric name has one kind");
        auto& cells = family->second.cells;
        const auto found = cells.find(labels);
        return found != cells.end() ? found->second : cells.emplace(labels, make()).first->second;
    }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(std::string_view name, std::string_view help, const Labels& labels) {
    Cell& cell = state_->cell(name, help, prometheus::MetricType::Counter, labels,
                              [] { return Cell{std::make_unique<Counter>()}; });
    auto* const found = std::get_if<std::unique_ptr<Counter>>(&cell);
    OSSA_BUG_IF(found == nullptr, "a counter that is read elsewhere has no handle");
    return **found;
}

Gauge& Metrics::gauge(std::string_view name, std::string_view help, const Labels& labels) {
    Cell& cell =
        state_->cell(name, help, prometheus::MetricType::Gauge, labels, [] { return Cell{std::make_unique<Gauge>()}; });
    auto* const found = std::get_if<std::unique_ptr<Gauge>>(&cell);
    OSSA_BUG_IF(found == nullptr, "a gauge that is read elsewhere has no handle");
    return **found;
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help, const Labels& labels,
                              std::span<const std::chrono::nanoseconds> bounds) {
    Cell& cell = state_->cell(name, help, prometheus::MetricType::Histogram, labels,
                              [&] { return Cell{std::make_unique<Histogram>(bounds)}; });
    return *std::get<std::unique_ptr<Histogram>>(cell);
}

void Metrics::read(std::string_view name, std::string_view help, ReadAs as, std::function<double()> value,
                   const Labels& labels) {
    const auto type = as == ReadAs::counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    state_->cell(name, help, type, labels, [&] { return Cell{Reader{std::move(value)}}; });
}

std::string Metrics::text() const {
    std::vector<prometheus::MetricFamily> collected;
    {
        const std::lock_guard lock{state_->mutex};
        collected.reserve(state_->families.size());
        for (const auto& [name, family] : state_->families) {
            prometheus::MetricFamily out;
            out.name = name;
            out.help = family.help;
            out.type = family.type;
            for (const auto& [labels, cell] : family.cells) {
                out.metric.push_back(collect(labels, cell, family.type));
            }
            collected.push_back(std::move(out));
        }
    }
    return prometheus::TextSerializer{}.Serialize(collected);
}

}  // namespace ossa::net
