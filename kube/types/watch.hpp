// WatchMachine: list, then watch, for ever. It decides what to ask next and what an answer means for the Store; whoever
// drives it does the I/O (kube/runtime/reflector.hpp) or replays a script (its tests).
//
//   initial watch ──(refused: the server cannot)──> list, page by page ──> watch from its version ──> read … ──┐
//        │ bookmark that ends the initial events                              ▲      watch ended or failed      │
//        └──────────> read … ────────────────────────────────────────────────┘<───────────────────────────────┘
//
// - A place that is lost (410, as an answer or as an ERROR event) begins anew: at once the first time, then with long
//   back-off; the lost version is never asked for again (R046).
// - What ends or fails without having brought anything waits, longer each time; what brought something does not.
// - resourceVersions are opaque here.
// Source: Kubernetes API concepts ("Efficient detection of changes"), KEP-956 (bookmarks), KEP-3157 (streaming lists).
#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "base/json.hpp"
#include "kube/types/backoff.hpp"

namespace ossa::kube {

class WatchMachine {
  public:
    // What to do next.
    struct List {
        std::string continue_token;  // empty: the first page
    };
    struct Watch {
        std::string from_version;
        bool initial = false;
    };
    struct Read {};  // the next event of the open watch
    struct Sleep {
        std::chrono::milliseconds duration;
    };
    using Step = std::variant<List, Watch, Read, Sleep>;

    // What happened means for the Store.
    enum class Effect : std::uint8_t {
        nothing,
        begin,   // objects from here on go into a new Store, beside the old one
        put,     // this event's object is there
        remove,  // this event's object is gone
        swap,    // the new Store is complete: it takes the old one's place
        note,    // the Store is as of a later version
    };

    explicit WatchMachine(std::uint32_t seed);

    // The next thing to do. Calling it again before something has happened gives the same.
    const Step& step() const noexcept { return step_; }

    // What happened then. All of a page's objects go into the new Store before `swap`.
    Effect on_page(std::string_view resource_version, std::string_view continue_token);
    Effect on_watch_opened();
    // {"type": …, "object": …}; what is no event is treated as a failure.
    Effect on_event(json::Value event);
    void on_watch_ended();
    void on_failure(const Error& error);
    void on_slept();

    // The version that the Store is as of, or will be once swapped.
    const std::string& version() const noexcept { return version_; }
    bool replacing() const noexcept { return replacing_; }
    // Why the last wait or new beginning was needed.
    const std::string& reason() const noexcept { return reason_; }

  private:
    void begin_anew();
    void lost(std::string reason);
    void wait_then(Step step, Backoff& backoff, std::string reason);

    Step step_;
    Step after_sleep_;
    std::string version_;
    std::string reason_;
    bool replacing_ = true;
    bool streaming_ = true;  // the initial list as a watch; false once the server has refused that
    bool in_initial_ = false;
    bool productive_ = false;  // the open watch has brought something
    Backoff backoff_;
    Backoff relist_;
};

}  // namespace ossa::kube
