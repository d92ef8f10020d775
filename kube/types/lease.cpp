#include "kube/types/lease.hpp"

#include "kube/types/api.hpp"

namespace ossa::kube {
namespace {

std::string lease_object(const std::string& namespace_, const std::string& name, const std::string& resource_version,
                         const std::string& holder, std::int64_t seconds, const std::string& acquired,
                         const std::string& renewed, std::int64_t transitions) {
    std::string out = R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":)";
    json::append_quoted(out, name);
    out.append(R"(,"namespace":)");
    json::append_quoted(out, namespace_);
    if (!resource_version.empty()) {
        out.append(R"(,"resourceVersion":)");
        json::append_quoted(out, resource_version);
    }
    out.append(R"(},"spec":{"holderIdentity":)");
    json::append_quoted(out, holder);
    out.append(R"(,"leaseDurationSeconds":)").append(std::to_string(std::max<std::int64_t>(seconds, 1)));
    out.append(R"(,"acquireTime":)");
    json::append_quoted(out, acquired);
    out.append(R"(,"renewTime":)");
    json::append_quoted(out, renewed);
    return out.append(R"(,"leaseTransitions":)").append(std::to_string(transitions)).append("}}");
}

}  // namespace

LeaseRecord lease_record_of(json::Value lease) {
    const json::Value spec = lease.at("spec");
    return {.holder = text_of(spec.at("holderIdentity")),
            .resource_version = text_of(lease.at("metadata").at("resourceVersion")),
            .duration_seconds = spec.at("leaseDurationSeconds").int64_or(0),
            .transitions = spec.at("leaseTransitions").int64_or(0),
            .renew_time = text_of(spec.at("renewTime")),
            .acquire_time = text_of(spec.at("acquireTime"))};
}

void LeaseMachine::on_read(LeaseRecord record, Time now) {
    if (!has_seen_ || record.resource_version != seen_.resource_version) {
        changed_at_ = now;
        has_seen_ = true;
    }
    seen_ = std::move(record);
    const bool ours = seen_.holder == identity_;
    // The holder's own idea of the duration counts, if it is longer than ours.
    const Time ends =
        changed_at_ + std::max<std::chrono::milliseconds>(
                          times_.lease, std::chrono::seconds(std::max<std::int64_t>(seen_.duration_seconds, 0)));
    if (ours || seen_.holder.empty() || now >= ends) {
        step_ = Take{seen_, ours};
        return;
    }
    step_ = Sleep{std::min(ends, now + jitter_.next())};
}

void LeaseMachine::on_absent() {
    step_ = Create{};
}

void LeaseMachine::on_written(LeaseRecord record, Time sent, Time now) {
    seen_ = std::move(record);
    has_seen_ = true;
    changed_at_ = now;
    leads_until_ = sent + times_.renew_deadline;
    renew_next_ = true;
    step_ = Sleep{now + times_.retry};
}

void LeaseMachine::on_failure(Time now) {
    renew_next_ = false;
    step_ = Sleep{now + jitter_.next()};
}

void LeaseMachine::on_slept() {
    step_ = renew_next_ ? Step{Take{seen_, true}} : Step{Read{}};
}

std::string lease_text(const std::string& namespace_, const std::string& name, const std::string& identity,
                       const LeaseTimes& times, const LeaseRecord* over, bool ours,
                       std::chrono::system_clock::time_point now) {
    const std::string time = micro_time(now);
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(times.lease).count();
    return lease_object(namespace_, name, over != nullptr ? over->resource_version : "", identity, seconds,
                        ours && over != nullptr && !over->acquire_time.empty() ? over->acquire_time : time, time,
                        over == nullptr ? 0 : over->transitions + (ours ? 0 : 1));
}

std::string released_lease_text(const std::string& namespace_, const std::string& name, const LeaseRecord& over,
                                std::chrono::system_clock::time_point now) {
    const std::string time = micro_time(now);
    return lease_object(namespace_, name, over.resource_version, "", 1, time, time, over.transitions);
}

}  // namespace ossa::kube
