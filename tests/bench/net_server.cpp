// net_server: our HttpServer with a handler that answers a fixed text, beside limit_server: what net/ costs alone.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "certs/files.hpp"
#include "net/server.hpp"

int main(int argc, char** argv) {
    CLI::App app{"HttpServer with a fixed answer"};
    std::string address = "127.0.0.1:0";
    std::string certificate;
    std::string key;
    std::size_t answer_bytes = 300;
    unsigned workers = 1;
    app.add_option("--listen-tls", address);
    app.add_option("--tls-cert-file", certificate)->required();
    app.add_option("--tls-key-file", key)->required();
    app.add_option("--answer-bytes", answer_bytes);
    app.add_option("--workers", workers);
    CLI11_PARSE(app, argc, argv);

    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);

    auto identity = ossa::certs::load_identity({certificate, key, {}, {}});
    if (!identity) {
        std::fprintf(stderr, "%s\n", identity.error().message().c_str());
        return 1;
    }
    const std::string answer(answer_bytes, 'x');
    const auto handler = [&answer](ossa::net::Exchange& exchange) {
        // As a webhook's answer carries it, so that the load generator can check it.
        const std::string_view body = exchange.request().body;
        const std::size_t at = body.find("\"uid\":\"");
        std::string& out = exchange.response().body;
        if (at != std::string_view::npos) {
            out += body.substr(at + 7, 36);
        }
        out.append(answer, 0, answer.size() - std::min(answer.size(), out.size()));
    };
    ossa::net::ServerOptions options;
    options.address = address;
    options.workers = workers;
    options.identity = std::make_shared<ossa::net::IdentityCell>(std::move(*identity));
    for (const char* path : {"/mutate-ossa-ai-v1-agent", "/validate-ossa-ai-v1-agent"}) {
        options.routes.push_back({ossa::net::Method::post, path, "application/json", handler});
    }
    ossa::net::HttpServer server{std::move(options)};
    if (auto started = server.start(); !started) {
        std::fprintf(stderr, "%s\n", started.error().message().c_str());
        return 1;
    }
    int signal = 0;
    sigwait(&ends, &signal);
    server.stop();
    return 0;
}
