#include "webhook/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <thread>

#include "base/version.hpp"

namespace ossa::webhook {
namespace {

// --tls-cert-file is also OSSA_TLS_CERT_FILE.
std::string variable_of(std::string flag) {
    std::string out = "OSSA_";
    for (const char c : flag.substr(2)) {
        out.push_back(c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    }
    return out;
}

template <class T>
CLI::Option* add(CLI::App& app, const std::string& flag, T& value, const std::string& help) {
    return app.add_option(flag, value, help)->envname(variable_of(flag))->capture_default_str();
}

}  // namespace

Parsed parse_options(int argc, const char* const* argv) {
    Parsed out;
    Options& o = out.options;
    std::string log_format = "text";
    std::string log_level = "info";
    double drain_seconds = 10;
    std::string tenant_quotas = "off";
    std::size_t header_bytes = o.limits.head_bytes_max;

    CLI::App app{
        "ossa-webhook: admission webhook for OSSA Agents (ossa.ai/v1).\n"
        "Defaults Agents and refuses what breaks the OSSA 1.0 schema or the operator's rules.\n"
        "Paths on the TLS port: /mutate-ossa-ai-v1-agent, /validate-ossa-ai-v1-agent,\n"
        "/validate-ossa-ai-v1-agent-scale, /validate-ossa-ai-v1-tenantquota.\n"
        "Paths on the plain port: /healthz, /readyz (?verbose), /metrics.",
        "ossa-webhook"};
    app.set_version_flag("--version", std::string("ossa-webhook ") + std::string(version));
    app.footer(
        "Every flag can also be given as an environment variable: --tls-cert-file as OSSA_TLS_CERT_FILE.\n"
        "SIGTERM drains (not ready, keep serving for --drain-seconds, then end); a second one ends at once.\n"
        "Exit codes: 0 ended as asked, 1 could not start, 2 wrong command line.");
    add(app, "--listen-tls", o.listen_tls, "HOST:PORT of the admission server; \":9443\" is every interface");
    add(app, "--listen-http", o.listen_http, "HOST:PORT of health and metrics, without TLS");
    add(app, "--tls-cert-file", o.tls_cert_file, "PEM: the serving certificate, then its chain")->required();
    add(app, "--tls-key-file", o.tls_key_file, "PEM: its private key")->required();
    add(app, "--client-ca-file", o.client_ca_file, "PEM: only clients with a certificate of this CA may call");
    add(app, "--client-allowed-names", o.client_allowed_names, "common or DNS names those clients may have; none: any")
        ->delimiter(',');
    add(app, "--workers", o.workers, "worker threads; 0: one a core, four at the most")->check(CLI::Range(0, 256));
    add(app, "--max-inflight-bytes", o.limits.inflight_bytes_max, "bytes of all bodies in memory; beyond it 503")
        ->check(CLI::Range(std::size_t{8} << 20, std::size_t{16} << 30));
    add(app, "--max-body-bytes", o.limits.body_bytes_max, "bytes of one body; beyond it 413")
        ->check(CLI::Range(std::size_t{64} << 10, std::size_t{64} << 20));
    add(app, "--max-header-bytes", header_bytes, "bytes of a request's head; beyond it 431")
        ->check(CLI::Range(std::size_t{1} << 10, std::size_t{1} << 20));
    add(app, "--max-connections", o.limits.connections_max, "open connections; more are closed at once")
        ->check(CLI::Range(1, 1'000'000));
    add(app, "--drain-seconds", drain_seconds, "how long to go on serving after SIGTERM")
        ->check(CLI::Range(0.0, 300.0));
    app.add_flag("--require-image", o.policy.require_image, "refuse k8s and docker Agents without an image")
        ->envname("OSSA_REQUIRE_IMAGE");
    add(app, "--tenant-quotas", tenant_quotas,
        "on: TenantQuotas are heeded, which needs the API server; off: nothing is counted or refused for them")
        ->check(CLI::IsMember({"on", "off"}));
    app.add_flag("--require-tenant-quota", o.require_tenant_quota, "refuse Agents in namespaces without a TenantQuota")
        ->envname("OSSA_REQUIRE_TENANT_QUOTA");
    add(app, "--gpu-resource-name", o.policy.gpu_resource, "the resource that counts as a GPU");
    add(app, "--kubeconfig", o.kubeconfig,
        "file with the API server and our identity; none: $KUBECONFIG, else the Pod's service account");
    add(app, "--log-format", log_format, "text or json")->check(CLI::IsMember({"text", "json"}));
    add(app, "--log-level", log_level, "debug (a line for each decision), info (denials), warn, error")
        ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        const int code = app.exit(e);
        out.exit_code = code == 0 ? 0 : exit_usage;
        return out;
    }
    o.limits.head_bytes_max = header_bytes;
    o.drain_grace = std::chrono::milliseconds(static_cast<std::int64_t>(drain_seconds * 1000));
    o.log_format = net::parse_log_format(log_format).value_or(net::LogFormat::text);
    o.log_level = net::parse_log_level(log_level).value_or(net::LogLevel::info);
    o.policy.tenant_quotas = tenant_quotas == "on";
    if (o.workers == 0) {
        o.workers = std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
    }
    return out;
}

}  // namespace ossa::webhook
