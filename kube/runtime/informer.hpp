// Informer: a Store of trimmed objects, kept by a Reflector, that tells what changed. T is what of an object is kept.
//
// Ordered by namespace and name, so that a namespace is a range. A relist takes the old Store's place at once: readers
// never see half of one, and whatever differs is told as a change. Belongs to one thread; pointers that changed() is
// given, and those of find(), live until the next change.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "kube/runtime/reflector.hpp"

namespace ossa::kube {

template <class T>
class Informer final : public Sink {
  public:
    using Objects = std::map<ObjectKey, T>;
    using Trim = std::function<T(json::Value)>;
    // before or after is null when it is new or gone; after a removal `removed_at` is its version, "" when it was
    // missed.
    using Changed =
        std::function<void(const ObjectKey&, const T* before, const T* after, const std::string& removed_at)>;

    Informer(Trim trim, Changed changed) : trim_(std::move(trim)), changed_(std::move(changed)) {}

    bool synced() const noexcept { return synced_; }
    const std::string& version() const noexcept { return version_; }
    const Objects& objects() const noexcept { return objects_; }
    const T* find(const ObjectKey& key) const {
        const auto found = objects_.find(key);
        return found == objects_.end() ? nullptr : &found->second;
    }
    // All of one namespace: [first, last).
    std::pair<typename Objects::const_iterator, typename Objects::const_iterator> in(const std::string& ns) const {
        return {objects_.lower_bound({ns, ""}), objects_.lower_bound({ns + '\0', ""})};
    }

    void begin() override {
        next_.clear();
        replacing_ = true;
    }
    void put(json::Value object) override {
        ObjectKey key = key_of(object);
        T after = trim_(object);
        if (replacing_) {
            next_.insert_or_assign(std::move(key), std::move(after));
            return;
        }
        advance(object);
        const auto found = objects_.find(key);
        if (found == objects_.end()) {
            const auto added = objects_.emplace(key, std::move(after)).first;
            return changed_(key, nullptr, &added->second, "");
        }
        const T before = std::exchange(found->second, std::move(after));
        changed_(key, &before, &found->second, "");
    }
    void remove(json::Value object) override {
        const ObjectKey key = key_of(object);
        if (replacing_) {
            next_.erase(key);
            return;
        }
        advance(object);
        const T last = trim_(object);
        objects_.erase(key);
        changed_(key, &last, nullptr, version_of(object));
    }
    void swap(const std::string& version) override {
        const Objects before = std::exchange(objects_, std::exchange(next_, {}));
        replacing_ = false;
        synced_ = true;
        version_ = version;
        for (const auto& [key, last] : before) {
            if (!objects_.contains(key)) {
                changed_(key, &last, nullptr, "");
            }
        }
        for (const auto& [key, now] : objects_) {
            const auto known = before.find(key);
            changed_(key, known == before.end() ? nullptr : &known->second, &now, "");
        }
    }
    void note(const std::string& version) override { version_ = version; }

  private:
    static std::string version_of(json::Value object) {
        return std::string{object.at("metadata").at("resourceVersion").string_or("")};
    }
    static ObjectKey key_of(json::Value object) {
        const json::Value metadata = object.at("metadata");
        return {std::string{metadata.at("namespace").string_or("")}, std::string{metadata.at("name").string_or("")}};
    }
    void advance(json::Value object) { version_ = version_of(object); }

    Trim trim_;
    Changed changed_;
    Objects objects_, next_;
    bool replacing_ = true, synced_ = false;
    std::string version_;
};

}  // namespace ossa::kube
