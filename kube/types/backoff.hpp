// Backoff: how long to wait before the next attempt. Doubles up to a most, with jitter so that many do not come at
// once. Pure: its dice are its own, thrown from a seed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace ossa::kube {

class Backoff {
  public:
    using Millis = std::chrono::milliseconds;
    Backoff(Millis first, Millis most, std::uint32_t seed) : first_(first), most_(most), dice_(seed) {}

    // Between the half and the whole of the next step.
    Millis next() {
        const Millis step = std::min(most_, first_ * (std::int64_t{1} << std::min(attempts_, 30U)));
        ++attempts_;
        return step / 2 + Millis(std::uniform_int_distribution<std::int64_t>(0, step.count() / 2)(dice_));
    }
    void reset() noexcept { attempts_ = 0; }
    unsigned attempts() const noexcept { return attempts_; }

  private:
    Millis first_, most_;
    unsigned attempts_ = 0;
    std::minstd_rand dice_;
};

}  // namespace ossa::kube
