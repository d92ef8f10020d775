#include "schema/rule_report.hpp"

#include <algorithm>
#include <tuple>

#include "base/bug.hpp"

namespace ossa::schema {

std::string Where::pointer(std::initializer_list<std::string_view> below) const {
    constexpr std::size_t steps_max = 16;
    std::array<const Where*, steps_max> way{};
    std::size_t n = 0;
    const Where* top = this;
    for (; top->up_ != nullptr; top = top->up_) {
        OSSA_BUG_IF(n == way.size(), "no rule looks this deep");
        way[n++] = top;
    }
    std::string out{top->name_};
    while (n > 0) {
        const Where& step = *way[--n];
        out.push_back('/');
        if (step.is_index_) {
            out.append(std::to_string(step.index_));
        } else {
            json::append_pointer_token(out, step.name_);
        }
    }
    for (const std::string_view name : below) {
        out.push_back('/');
        json::append_pointer_token(out, name);
    }
    return out;
}

void Report::put(kube::CauseType cause, std::string_view rule, std::string pointer, std::string_view member,
                 json::Value found, std::string_view message, std::string_view hint) {
    if (full()) {
        return;
    }
    const auto is_said = [&](const kube::Finding& finding) {
        return finding.severity == kube::Severity::error && finding.pointer == pointer && finding.member == member &&
               finding.rule.starts_with("schema/");
    };
    const auto schema_end = out_.begin() + static_cast<std::ptrdiff_t>(first_);
    if (std::any_of(out_.begin(), schema_end, is_said)) {
        return;
    }
    kube::Finding finding;
    finding.severity = severity_;
    finding.cause = cause;
    finding.rule = rule;
    finding.pointer = std::move(pointer);
    finding.member = member;
    finding.found = json::excerpt(found);
    finding.message = message;
    finding.hint = hint;
    out_.push_back(std::move(finding));
}

std::vector<std::pair<NameSet::Entry, NameSet::Entry>> NameSet::sorted_repeats() {
    const auto place = [](const Entry& entry) { return std::tuple{entry.list, entry.index}; };
    std::sort(many_.begin(), many_.end(), [&](const Entry& a, const Entry& b) {
        if (a.hash != b.hash) {
            return a.hash < b.hash;
        }
        const int order = text_of(a).compare(text_of(b));
        return order != 0 ? order < 0 : place(a) < place(b);
    });
    std::vector<std::pair<Entry, Entry>> out;
    for (std::size_t first = 0, i = 1; i < many_.size(); ++i) {
        if (many_[i].hash == many_[first].hash && text_of(many_[i]) == text_of(many_[first])) {
            out.emplace_back(many_[i], many_[first]);
        } else {
            first = i;
        }
    }
    std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return place(a.first) < place(b.first); });
    return out;
}

}  // namespace ossa::schema
