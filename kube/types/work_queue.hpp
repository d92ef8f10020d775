// WorkQueue: which key to work on next. A key is in it once, however often it is added; a key that is being worked on
// and is added meanwhile comes again when it is done; the earliest of several times wins; failures back off by key.
// Pure: the clock is an argument. Not promised: any order among keys that are due at the same time but that of their
// adding.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "kube/types/backoff.hpp"

namespace ossa::kube {

template <class Key>
class WorkQueue {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Millis = std::chrono::milliseconds;

    explicit WorkQueue(Millis first_backoff = Millis(100), Millis most_backoff = std::chrono::seconds(60),
                       std::uint32_t seed = 1)
        : first_(first_backoff), most_(most_backoff), seed_(seed) {}

    // Due at `when`, or earlier if it was due earlier already.
    void add(const Key& key, Time when) {
        Entry& entry = entries_[key];
        if (entry.due && *entry.due <= when) {
            return;
        }
        if (entry.due && !entry.working) {
            order_.erase({*entry.due, entry.serial, key});
        }
        entry.due = when;
        entry.serial = ++serial_;
        if (!entry.working) {
            order_.insert({when, entry.serial, key});
        }
    }
    // Due after this key's own back-off, which grows until forget().
    void add_after_failure(const Key& key, Time now) {
        auto found = backoffs_.find(key);
        if (found == backoffs_.end()) {
            found = backoffs_.emplace(key, Backoff{first_, most_, seed_ + static_cast<std::uint32_t>(++serial_)}).first;
        }
        add(key, now + found->second.next());
    }
    void forget(const Key& key) { backoffs_.erase(key); }

    // A key that is due; it is worked on until done().
    std::optional<Key> pop(Time now) {
        if (order_.empty() || std::get<0>(*order_.begin()) > now) {
            return {};
        }
        Key key = std::get<2>(*order_.begin());
        order_.erase(order_.begin());
        Entry& entry = entries_[key];
        entry.due.reset();
        entry.working = true;
        return key;
    }
    void done(const Key& key) {
        const auto found = entries_.find(key);
        if (found == entries_.end()) {
            return;
        }
        Entry& entry = found->second;
        entry.working = false;
        if (entry.due) {
            order_.insert({*entry.due, entry.serial, key});
        } else {
            entries_.erase(found);
        }
    }

    // When the next key is due; nothing when only keys that are being worked on are left.
    std::optional<Time> next_due() const {
        return order_.empty() ? std::nullopt : std::optional{std::get<0>(*order_.begin())};
    }
    std::size_t size() const noexcept { return entries_.size(); }

  private:
    struct Entry {
        std::optional<Time> due;
        std::uint64_t serial = 0;
        bool working = false;
    };
    std::map<Key, Entry> entries_;
    std::set<std::tuple<Time, std::uint64_t, Key>> order_;  // of those that nobody works on
    std::map<Key, Backoff> backoffs_;
    Millis first_, most_;
    std::uint32_t seed_;
    std::uint64_t serial_ = 0;
};

}  // namespace ossa::kube
