// What ossa-webhook can be told: every flag, its default and its environment variable.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/admission.hpp"
#include "net/limits.hpp"
#include "net/log.hpp"

namespace ossa::webhook {

struct Options {
    std::string listen_tls = ":9443";
    std::string listen_http = ":8081";
    std::string tls_cert_file;
    std::string tls_key_file;
    std::string client_ca_file;
    std::vector<std::string> client_allowed_names;
    unsigned workers = 0;  // 0: one a core, four at the most
    net::Limits limits;
    std::chrono::milliseconds drain_grace{10'000};
    engine::Policy policy;
    bool require_tenant_quota = false;
    std::string kubeconfig;
    net::LogFormat log_format = net::LogFormat::text;
    net::LogLevel log_level = net::LogLevel::info;
};

// Exit codes, stable: 0 ended as asked, 1 could not start or go on, 2 the command line is wrong.
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;

// Reads flags and OSSA_* variables. An exit code when the process should end here (--help, --version, a wrong flag).
struct Parsed {
    Options options;
    int exit_code = -1;  // -1: go on
};
Parsed parse_options(int argc, const char* const* argv);

}  // namespace ossa::webhook
