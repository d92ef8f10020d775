#include "webhook/operation_routes.hpp"

#include <chrono>

#include "base/version.hpp"

namespace ossa::webhook {
namespace {

using Seconds = std::chrono::sys_time<std::chrono::seconds>;

Seconds now() {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

// Every reason not to send reviews here, one line each; "ok" lines only when asked for.
void answer_ready(bool ready, const net::IdentityCell& identity, net::Exchange& exchange) {
    const bool verbose = exchange.request().parameter("verbose").has_value();
    const auto current = identity.read();
    const bool valid = current != nullptr && current->not_after() > now();
    std::string text;
    const auto line = [&](bool good, std::string_view check, const std::string& more) {
        if (verbose || !good) {
            text.append(good ? "[+]" : "[-]").append(check).append(good ? " ok" : " failed").append(more).append("\n");
        }
    };
    line(ready, "serving", ready ? "" : ": draining or not started");
    line(valid, "certificate",
         current == nullptr ? ": none"
                            : ": " + current->subject() + ", " +
                                  std::to_string((current->not_after() - now()).count() / 3600) + " hours left");
    const bool good = ready && valid;
    text.append(good ? "ok\n" : "not ready\n");
    exchange.response().plain(good ? 200 : 503, text);
}

}  // namespace

std::vector<net::Route> operation_routes(const std::atomic<bool>& ready, const net::IdentityCell& identity,
                                         net::Metrics& metrics) {
    metrics.gauge("ossa_build_info", "Always 1; the label tells the version.", {{"version", std::string(version)}})
        .set(1);
    std::vector<net::Route> out;
    out.push_back(
        {net::Method::get, "/healthz", "", [](net::Exchange& exchange) { exchange.response().plain(200, "ok\n"); }});
    out.push_back({net::Method::get, "/readyz", "",
                   [&ready, &identity](net::Exchange& exchange) { answer_ready(ready.load(), identity, exchange); }});
    out.push_back({net::Method::get, "/metrics", "", [&metrics](net::Exchange& exchange) {
                       exchange.response().content_type = net::Metrics::content_type;
                       exchange.response().body.append(metrics.text());
                   }});
    return out;
}

}  // namespace ossa::webhook
