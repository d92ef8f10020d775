#include "kube/types/watch.hpp"

#include "kube/types/api.hpp"

namespace ossa::kube {
namespace {
using std::chrono::seconds;
constexpr std::string_view initial_events_end = "k8s.io/initial-events-end";
}  // namespace

WatchMachine::WatchMachine(std::uint32_t seed)
    : step_(Watch{.from_version = "", .initial = true}),
      backoff_(seconds(2), seconds(30), seed),
      relist_(seconds(20), seconds(120), seed + 1) {}

void WatchMachine::begin_anew() {
    version_.clear();
    replacing_ = true;
    step_ = streaming_ ? Step{Watch{.from_version = "", .initial = true}} : Step{List{}};
}

void WatchMachine::wait_then(Step step, Backoff& backoff, std::string reason) {
    reason_ = std::move(reason);
    after_sleep_ = std::move(step);
    step_ = Sleep{backoff.next()};
}

void WatchMachine::lost(std::string reason) {
    begin_anew();
    if (relist_.attempts() == 0) {
        (void)relist_.next();  // this one is free
        reason_ = std::move(reason);
        return;
    }
    wait_then(step_, relist_, std::move(reason));
}

WatchMachine::Effect WatchMachine::on_page(std::string_view resource_version, std::string_view continue_token) {
    // Every page has the version of the first.
    version_ = resource_version;
    if (!continue_token.empty()) {
        step_ = List{std::string(continue_token)};
        return Effect::nothing;
    }
    replacing_ = false;
    step_ = Watch{.from_version = version_, .initial = false};
    return Effect::swap;
}

WatchMachine::Effect WatchMachine::on_watch_opened() {
    const auto* const watch = std::get_if<Watch>(&step_);
    in_initial_ = watch != nullptr && watch->initial;
    productive_ = false;
    step_ = Read{};
    return in_initial_ ? Effect::begin : Effect::nothing;
}

WatchMachine::Effect WatchMachine::on_event(json::Value event) {
    const std::string_view type = event.at("type").string_or("");
    const json::Value object = event.at("object");
    if (type == "ERROR") {
        on_failure(error_of_status(object));
        return Effect::nothing;
    }
    const json::Value metadata = object.at("metadata");
    const std::string_view resource_version = metadata.at("resourceVersion").string_or("");
    const bool change = type == "ADDED" || type == "MODIFIED" || type == "DELETED";
    if ((!change && type != "BOOKMARK") || resource_version.empty()) {
        on_failure(Error{ErrorCode::internal, "the watch sent what is no event: " + json::excerpt(event)});
        return Effect::nothing;
    }
    productive_ = true;
    backoff_.reset();
    if (change) {
        if (!in_initial_) {
            version_ = resource_version;
            relist_.reset();
        }
        return type == "DELETED" ? Effect::remove : Effect::put;
    }
    if (!in_initial_) {
        version_ = resource_version;
        relist_.reset();
        return Effect::note;
    }
    if (metadata.at("annotations").at(initial_events_end).string_or("") != "true") {
        return Effect::nothing;
    }
    version_ = resource_version;
    in_initial_ = false;
    replacing_ = false;
    return Effect::swap;
}

void WatchMachine::on_watch_ended() {
    Step again = Watch{.from_version = version_, .initial = false};
    if (in_initial_) {
        begin_anew();
        again = step_;
    }
    if (productive_ && !in_initial_) {
        step_ = std::move(again);
    } else {
        wait_then(std::move(again), backoff_, "the watch ended without an event");
    }
    in_initial_ = false;
    productive_ = false;
}

void WatchMachine::on_failure(const Error& error) {
    const auto* const watch = std::get_if<Watch>(&step_);
    const bool initial = in_initial_ || (watch != nullptr && watch->initial);
    in_initial_ = false;
    productive_ = false;
    if (error.code() == ErrorCode::gone) {
        return lost(error.message());
    }
    if (initial && (error.code() == ErrorCode::invalid || error.code() == ErrorCode::forbidden)) {
        streaming_ = false;  // a server without streaming lists says that these parameters are invalid or forbidden
        begin_anew();
        reason_ = error.message();
        return;
    }
    if (replacing_) {
        begin_anew();
        return wait_then(step_, backoff_, error.message());
    }
    wait_then(Watch{.from_version = version_, .initial = false}, backoff_, error.message());
}

void WatchMachine::on_slept() {
    step_ = std::move(after_sleep_);
}

}  // namespace ossa::kube
