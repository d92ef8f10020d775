// SnapshotCell: one thread publishes an immutable value, any thread reads the current one and keeps it as long as it
// likes. A mutex, not std::atomic<std::shared_ptr>: the latter is reported by TSan under GCC 12 (docs/traps.md), and
// readers are rare. Not promised: that a reader sees a value the moment it is published.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace ossa::net {

template <class T>
class SnapshotCell {
  public:
    using Snapshot = std::shared_ptr<const T>;

    SnapshotCell() = default;
    explicit SnapshotCell(Snapshot first) : value_(std::move(first)) {}

    Snapshot read() const {
        const std::lock_guard lock{mutex_};
        return value_;
    }

    void publish(Snapshot next) {
        {
            const std::lock_guard lock{mutex_};
            value_.swap(next);
        }  // the old value ends here, outside the lock
    }

  private:
    mutable std::mutex mutex_;
    Snapshot value_;
};

}  // namespace ossa::net
