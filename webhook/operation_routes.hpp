// The plain port: /healthz says that the process lives, /readyz that it should get reviews, /metrics what it did.
#pragma once

#include <atomic>
#include <vector>

#include "net/metrics.hpp"
#include "net/server.hpp"
#include "net/tls.hpp"

namespace ossa::webhook {

// All arguments outlive the server that serves the routes.
std::vector<net::Route> operation_routes(const std::atomic<bool>& ready, const net::IdentityCell& identity,
                                         net::Metrics& metrics);

}  // namespace ossa::webhook
