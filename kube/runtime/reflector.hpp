// Reflector: keeps a Store like the API server, for ever. What to ask next is WatchMachine's; here is the I/O.
//
// A watch is asked to end after 40 to 50 s, and one that stays silent longer than that is given up, so a path that is
// frozen is noticed within a minute (R048). Runs until its executor's context ends. Thread: the executor's.
#pragma once

#include <string>

#include "kube/client/api_client.hpp"
#include "kube/types/watch.hpp"
#include "net/task.hpp"

namespace ossa::kube {

// What a Reflector fills.
class Sink {
  public:
    virtual ~Sink() = default;
    virtual void begin() = 0;                           // a new Store, beside the one in use
    virtual void put(json::Value object) = 0;           // into the new one while there is one
    virtual void remove(json::Value object) = 0;        // as it was when it was deleted, with that version
    virtual void swap(const std::string& version) = 0;  // the new Store is complete and takes over
    virtual void note(const std::string& version) = 0;  // what is there is as of this version
};

// namespace_ "": all of them. `sink` and `client` outlive the task.
Task<void> reflect(ApiClient& client, ApiResource resource, std::string namespace_, Sink& sink, std::uint32_t seed);

}  // namespace ossa::kube
