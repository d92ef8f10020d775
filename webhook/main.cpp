// ossa-webhook: reads its flags, loads its certificate, serves until it is told to end, and drains.
#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/version.hpp"
#include "certs/files.hpp"
#include "kube/client/access.hpp"
#include "net/server.hpp"
#include "schema/schemas.hpp"
#include "webhook/admission_service.hpp"
#include "webhook/operation_routes.hpp"
#include "webhook/options.hpp"

namespace ossa::webhook {
namespace {

// Big buffers go back to the kernel at once, and threads share few arenas: the process's size follows its load down.
void bound_memory() {
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
    mallopt(M_ARENA_MAX, 2);
}

// A thread for the certificate files and for what waits on the API server.
class Background {
  public:
    ~Background() {
        context_.stop();
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    boost::asio::io_context& context() { return context_; }
    void start() {
        thread_ = std::thread([this] { context_.run(); });
    }

  private:
    boost::asio::io_context context_{1};
    std::thread thread_;
};

int run(const Options& options) {
    net::setup_log(options.log_format, options.log_level);
    // Blocked before the first thread starts, so that only sigwait below sees them.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    net::ignore_sigpipe();

    net::Metrics metrics;
    auto identity = std::make_shared<net::IdentityCell>();
    Background background;
    certs::FileWatcher watcher(
        background.context(),
        {options.tls_cert_file, options.tls_key_file, options.client_ca_file, options.client_allowed_names}, identity,
        metrics);
    if (const auto loaded = watcher.start(); !loaded) {
        OSSA_LOG(error, "cannot load the serving certificate", {"error", loaded.error().message()},
                 {"next", "check --tls-cert-file and --tls-key-file"});
        return exit_failed;
    }
    std::unique_ptr<kube::ApiClient> client;
    std::unique_ptr<QuotaLedger> ledger;
    if (options.policy.tenant_quotas) {
        auto access = kube::find_access(options.kubeconfig);
        if (!access) {
            OSSA_LOG(error, "cannot reach an API server, which TenantQuotas need", {"error", access.error().message()},
                     {"next", "set --kubeconfig, or --tenant-quotas=off to run without them"});
            return exit_failed;
        }
        OSSA_LOG(info, "TenantQuotas are heeded", {"api_server", access->host + ":" + access->port},
                 {"identity", access->origin});
        client = std::make_unique<kube::ApiClient>(background.context().get_executor(), std::move(*access),
                                                   kube::ApiClientOptions{.user_agent = "ossa-webhook"});
        ledger = std::make_unique<QuotaLedger>(background.context().get_executor(), *client,
                                               LedgerOptions{options.require_tenant_quota, options.policy.gpu_resource},
                                               metrics);
    }
    background.start();
    schema::warm_up();
    malloc_trim(0);  // compiling the schemas left free blocks behind

    AdmissionService admission(options.workers, options.policy, options.limits.body_bytes_max, metrics, ledger.get());
    std::atomic<bool> ready{false};

    net::ServerOptions tls;
    tls.address = options.listen_tls;
    tls.workers = options.workers;
    tls.limits = options.limits;
    tls.identity = identity;
    tls.routes = admission.routes();
    tls.metrics = &metrics;
    tls.name = "admission";
    net::HttpServer admission_server(std::move(tls));

    net::ServerOptions plain;
    plain.address = options.listen_http;
    plain.workers = 1;
    plain.limits.body_bytes_max = 4 << 10;
    plain.limits.inflight_bytes_max = 1 << 20;
    plain.limits.connections_max = 256;
    plain.routes = operation_routes(ready, *identity, metrics);
    plain.metrics = &metrics;
    plain.name = "operations";
    net::HttpServer operations_server(std::move(plain));

    for (net::HttpServer* server : {&admission_server, &operations_server}) {
        if (const auto started = server->start(); !started) {
            OSSA_LOG(error, "cannot start", {"error", started.error().message()});
            return exit_failed;
        }
    }
    ready = true;
    OSSA_LOG(info, "serving", {"version", version}, {"admission_port", admission_server.port()},
             {"operations_port", operations_server.port()}, {"workers", options.workers});

    int signal = 0;
    sigwait(&signals, &signal);
    OSSA_LOG(info, "draining", {"signal", signal}, {"grace_ms", options.drain_grace.count()});
    ready = false;
    admission_server.drain(options.drain_grace, [&] {
        const timespec no_time{};
        return sigtimedwait(&signals, nullptr, &no_time) > 0;  // a second signal: at once
    });
    operations_server.stop();
    OSSA_LOG(info, "ended");
    return 0;
}

}  // namespace
}  // namespace ossa::webhook

int main(int argc, char** argv) {
    ossa::webhook::bound_memory();
    try {
        const auto parsed = ossa::webhook::parse_options(argc, argv);
        return parsed.exit_code >= 0 ? parsed.exit_code : ossa::webhook::run(parsed.options);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ossa-webhook: %s\n", e.what());
        return ossa::webhook::exit_failed;
    }
}
