// What the rules (rules*.cpp, warnings.cpp) share: saying where a value is, reporting, names that must not repeat.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "kube/types/finding.hpp"

namespace ossa::schema {

using json::pick;

// Where a value is: a chain of steps on the stack, written out as a pointer only when there is something to report.
// A step refers to the one above it, which must outlive it (temporaries are refused).
class Where {
  public:
    explicit Where(std::string_view pointer) : name_(pointer) {}
    Where(const Where& up, std::string_view name) : up_(&up), name_(name) {}
    Where(const Where& up, std::size_t index) : up_(&up), index_(index), is_index_(true) {}
    Where(const Where&&, std::string_view) = delete;
    Where(const Where&&, std::size_t) = delete;
    Where(const Where&) = delete;
    Where& operator=(const Where&) = delete;

    // RFC 6901, with further member names below.
    std::string pointer(std::initializer_list<std::string_view> below = {}) const;

  private:
    const Where* up_ = nullptr;
    std::string_view name_;  // of the topmost: the base pointer
    std::size_t index_ = 0;
    bool is_index_ = false;
};

// Appends findings of one severity, at most findings_max, and none where the schema already reported.
class Report {
  public:
    Report(kube::Findings& out, kube::Severity severity, std::size_t findings_max)
        : out_(out), first_(out.size()), severity_(severity), findings_max_(findings_max) {}

    // `found` is shown in the message; give the absent Value for what must not be shown.
    void add(kube::CauseType cause, std::string_view rule, std::string pointer, json::Value found,
             std::string_view message, std::string_view hint = {}) {
        put(cause, rule, std::move(pointer), {}, found, message, hint);
    }
    void missing(std::string_view rule, const Where& object, std::string_view member, std::string_view message,
                 std::string_view hint = {}) {
        put(kube::CauseType::required, rule, object.pointer(), member, {}, message, hint);
    }
    bool full() const noexcept { return out_.size() - first_ >= findings_max_; }

  private:
    void put(kube::CauseType cause, std::string_view rule, std::string pointer, std::string_view member,
             json::Value found, std::string_view message, std::string_view hint);

    kube::Findings& out_;
    std::size_t first_;  // findings before it are the caller's, the schema's among them
    kube::Severity severity_;
    std::size_t findings_max_;
};

// Names that must not repeat. Up to 16 are compared pair by pair on the stack, more are sorted.
class NameSet {
  public:
    struct Entry {
        std::uint64_t hash;   // of the name
        std::uint32_t list;   // which list it stands in, when several share the names
        std::uint32_t index;  // in that list
        std::uint32_t place;  // of the name on the document's tape
    };

    // All names of one set are strings of one document.
    void add(json::Value name, std::uint32_t list, std::size_t index) {
        any_ = name;
        const Entry entry{json::NameKey::of(name.raw_string()).hash(), list, static_cast<std::uint32_t>(index),
                          name.index()};
        if (count_ < few_max) {
            few_[count_++] = entry;
            return;
        }
        if (many_.empty()) {
            many_.reserve(8 * few_max);
            many_.assign(few_.begin(), few_.end());
        }
        many_.push_back(entry);
    }

    json::Value value_of(const Entry& entry) const noexcept { return {any_.tape(), any_.strings(), entry.place}; }

    // Calls f(repeat, first) for each entry whose text stood before, in the order of the lists.
    template <class F>
    void each_repeat(F f) {
        if (many_.empty()) {
            for (std::size_t i = 1; i < count_; ++i) {
                for (std::size_t j = 0; j < i; ++j) {
                    if (few_[i].hash == few_[j].hash && text_of(few_[i]) == text_of(few_[j])) {
                        f(few_[i], few_[j]);
                        break;
                    }
                }
            }
            return;
        }
        for (const auto& [repeat, first] : sorted_repeats()) {
            f(repeat, first);
        }
    }

  private:
    static constexpr std::size_t few_max = 16;
    std::string_view text_of(const Entry& entry) const noexcept { return value_of(entry).raw_string(); }
    std::vector<std::pair<Entry, Entry>> sorted_repeats();

    json::Value any_;
    std::array<Entry, few_max> few_;
    std::size_t count_ = 0;
    std::vector<Entry> many_;  // all of them, once there are more than few_max
};

// The rules of one section each; rules.cpp calls them.
struct RuleOptions;
void check_body(json::Value body, const Where& at, const RuleOptions& options, Report& report);
void check_workload(json::Value workload, const Where& at, Report& report);
void check_scaling(json::Value scaling, const Where& at, Report& report);
void check_rollout(json::Value rollout, const Where& at, Report& report);
void check_mcp(json::Value mcp, const Where& at, std::string_view namespace_name, Report& report);
// Each member of an object must be a quantity that is not negative.
void check_quantities(json::Value amounts, const Where& at, std::string_view rule, Report& report);
// "512MB" -> "write 512M or 512Mi"; "" when there is no guess.
std::string quantity_hint(std::string_view text);
// k8s and docker run as a Deployment; the others are only registered.
bool runs_here(json::Value runtime_type) noexcept;

}  // namespace ossa::schema
