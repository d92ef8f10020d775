// ApiClient: one exchange, or one watch, with the API server. HTTP/1.1 over TLS, connections are kept and reused.
//
// Every call has a deadline. A request that a kept connection lost before any of the answer came is sent once more on a
// new one: all that we send is safe to repeat (reads; writes that carry a resourceVersion; applies; creations, which
// then say already_exists). 401 reads the credentials again and tries once more (R050). Answers that are no success
// come as Errors (kube::error_of_answer). Belongs to its executor's thread. Limits: 64 MiB an answer, 8 MiB a watch
// event, `connections_max` exchanges at a time (more wait their turn).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "kube/client/access.hpp"
#include "kube/types/api.hpp"
#include "net/task.hpp"

namespace ossa::kube {

using net::SteadyPoint;
using net::Task;

struct ApiClientOptions {
    std::string user_agent = "ossa-operator";
    std::size_t connections_max = 32;
    std::chrono::seconds reread_after{30};  // token and CA files
    std::chrono::seconds idle_max{50};      // kept connections
};

// An open watch: its events, one by one.
class WatchStream {
  public:
    struct State;
    explicit WatchStream(std::unique_ptr<State> state);
    ~WatchStream();
    WatchStream(WatchStream&&) noexcept;

    // Nothing: the server ended it in good order. Errors: deadline, unavailable, internal (no JSON).
    Task<Result<std::optional<json::Document>>> next(SteadyPoint deadline);

  private:
    std::unique_ptr<State> state_;
};

class ApiClient {
  public:
    ApiClient(boost::asio::any_io_executor executor, ClusterAccess access, ApiClientOptions options = {});
    ~ApiClient();
    ApiClient(const ApiClient&) = delete;
    ApiClient& operator=(const ApiClient&) = delete;

    Task<Result<json::Document>> send(ApiRequest request, SteadyPoint deadline);
    // `deadline` is for the head of the answer. The stream has a connection of its own.
    Task<Result<std::unique_ptr<WatchStream>>> watch(ApiRequest request, SteadyPoint deadline);
    // All objects, straight from etcd, page by page; take() is called for each. Gives the list's resourceVersion.
    Task<Result<std::string>> list(ApiResource resource, std::string namespace_, SteadyPoint deadline,
                                   std::function<void(json::Value item)> take);

    const ClusterAccess& access() const noexcept;
    const boost::asio::any_io_executor& executor() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ossa::kube
