#include "kube/runtime/reflector.hpp"

#include <random>

#include "net/log.hpp"

namespace ossa::kube {
namespace {

using std::chrono::seconds;
constexpr seconds list_deadline{60};
constexpr seconds head_deadline{20};
constexpr seconds silence_margin{5};

SteadyPoint in(seconds time) {
    return std::chrono::steady_clock::now() + time;
}

// One open watch: its events until it ends.
struct Open {
    std::unique_ptr<WatchStream> stream;
    SteadyPoint silent_until;
};

}  // namespace

Task<void> reflect(ApiClient& client, ApiResource resource, std::string namespace_, Sink& sink, std::uint32_t seed) {
    WatchMachine machine(seed);
    std::minstd_rand dice(seed);
    Open open;
    const auto failed = [&](const Error& error) {
        open.stream.reset();
        OSSA_LOG(warn, "a list or watch failed and is begun anew", {"resource", resource.plural},
                 {"error", error.message()});
        machine.on_failure(error);
    };
    for (;;) {
        const WatchMachine::Step step = machine.step();
        if (const auto* const sleep = std::get_if<WatchMachine::Sleep>(&step)) {
            auto sleeping = net::sleep_until(std::chrono::steady_clock::now() + sleep->duration);
            co_await std::move(sleeping);
            machine.on_slept();
        } else if (const auto* const list = std::get_if<WatchMachine::List>(&step)) {
            auto sending = client.send(list_request(resource, namespace_, list_page_size, list->continue_token),
                                       in(list_deadline));
            const auto page = co_await std::move(sending);
            if (!page) {
                failed(page.error());
                continue;
            }
            if (list->continue_token.empty()) {
                sink.begin();
            }
            for (const json::Value item : page->root().at("items").elements()) {
                sink.put(item);
            }
            const json::Value metadata = page->root().at("metadata");
            if (machine.on_page(metadata.at("resourceVersion").string_or(""), metadata.at("continue").string_or("")) ==
                WatchMachine::Effect::swap) {
                sink.swap(machine.version());
            }
        } else if (const auto* const watch = std::get_if<WatchMachine::Watch>(&step)) {
            const seconds timeout(std::uniform_int_distribution<int>(40, 50)(dice));
            auto opening = client.watch(
                watch_request(resource, namespace_, watch->from_version, timeout, watch->initial), in(head_deadline));
            auto opened = co_await std::move(opening);
            if (!opened) {
                failed(opened.error());
                continue;
            }
            open = {std::move(*opened), in(timeout + silence_margin)};
            if (machine.on_watch_opened() == WatchMachine::Effect::begin) {
                sink.begin();
            }
        } else {
            auto reading = open.stream->next(open.silent_until);
            const auto event = co_await std::move(reading);
            if (!event) {
                failed(event.error());
                continue;
            }
            if (!*event) {
                open.stream.reset();
                machine.on_watch_ended();
                continue;
            }
            const json::Value root = (*event)->root();
            switch (machine.on_event(root)) {
                case WatchMachine::Effect::put: sink.put(root.at("object")); break;
                case WatchMachine::Effect::remove: sink.remove(root.at("object")); break;
                case WatchMachine::Effect::swap: sink.swap(machine.version()); break;
                case WatchMachine::Effect::note: sink.note(machine.version()); break;
                case WatchMachine::Effect::begin:
                case WatchMachine::Effect::nothing: break;
            }
            if (!std::holds_alternative<WatchMachine::Read>(machine.step())) {
                OSSA_LOG(info, "a watch has lost its place", {"resource", resource.plural}, {"why", machine.reason()});
                open.stream.reset();
            }
        }
    }
}

}  // namespace ossa::kube
