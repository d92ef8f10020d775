// Metrics: counters, gauges and histograms, and their text for a scraper.
// The hot path holds a handle (a reference that lives as long as the registry) and pays one atomic add; names and
// labels are looked up once, at start. prometheus-cpp writes the text; its own histogram takes a lock, so ours is a row
// of atomics. Any thread. Not promised: that one scrape is a moment in time; values that change during it may be a step
// apart.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ossa::net {

using Labels = std::vector<std::pair<std::string, std::string>>;

class alignas(64) Counter {
  public:
    void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

class alignas(64) Gauge {
  public:
    void add(std::int64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
    void set(std::int64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
    std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::int64_t> value_{0};
};

// Durations in fixed buckets, given by their upper bounds in rising order; one more bucket takes the rest.
class Histogram {
  public:
    explicit Histogram(std::span<const std::chrono::nanoseconds> bounds);
    void observe(std::chrono::nanoseconds duration) noexcept;
    std::uint64_t count() const noexcept;
    const std::vector<std::int64_t>& bounds_ns() const noexcept { return bounds_; }
    std::uint64_t bucket(std::size_t i) const noexcept { return buckets_[i].load(std::memory_order_relaxed); }
    std::int64_t sum_ns() const noexcept { return sum_.load(std::memory_order_relaxed); }

  private:
    std::vector<std::int64_t> bounds_;
    std::unique_ptr<std::atomic<std::uint64_t>[]> buckets_;  // bounds_.size() + 1
    std::atomic<std::int64_t> sum_{0};
};

// 25 µs to 10 s, for requests answered from memory and for those that wait for another server.
std::span<const std::chrono::nanoseconds> request_buckets() noexcept;

class Metrics {
  public:
    Metrics();
    ~Metrics();
    Metrics(const Metrics&) = delete;
    Metrics& operator=(const Metrics&) = delete;

    // The same name and labels give the same object. The help text and the kind of the first call stay; asking for one
    // name as two kinds is a bug.
    Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
    Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {});
    Histogram& histogram(std::string_view name, std::string_view help, const Labels& labels = {},
                         std::span<const std::chrono::nanoseconds> bounds = request_buckets());
    // Read at each scrape, from the scraping thread: for values that live elsewhere.
    enum class ReadAs : std::uint8_t { counter, gauge };
    void read(std::string_view name, std::string_view help, ReadAs as, std::function<double()> value,
              const Labels& labels = {});

    // Prometheus text format 0.0.4.
    std::string text() const;
    static constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ossa::net
