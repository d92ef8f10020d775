// files: the server's identity from files, and a watcher that follows them.
// The watcher compares what the files hold, not their times, so every way of replacing them works (a Secret's symbolic
// link, a copy in place). A pair that is half written, or does not fit, changes nothing: the old identity stays, the
// refusal is logged and counted, and the next look tries again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/tls.hpp"

namespace ossa::net {
class Counter;
class Metrics;
}  // namespace ossa::net

namespace ossa::certs {

struct FilePaths {
    std::string certificate;  // --tls-cert-file
    std::string key;          // --tls-key-file
    std::string client_ca;    // --client-ca-file; empty: no client certificate is asked for
    std::vector<std::string> client_names;
};

// Reads the files and makes an identity of them. Errors name the file.
Result<std::shared_ptr<const net::TlsIdentity>> load_identity(const FilePaths& paths);

// Publishes a new identity into `cell` when the files hold one. Lives on the thread that runs `context`, where its
// short file reads happen; give it a thread that no request waits for. Must end before `context` and `metrics`.
class FileWatcher {
  public:
    FileWatcher(boost::asio::io_context& context, FilePaths paths, std::shared_ptr<net::IdentityCell> cell,
                net::Metrics& metrics, std::chrono::milliseconds interval = std::chrono::seconds{10});
    ~FileWatcher();
    FileWatcher(const FileWatcher&) = delete;
    FileWatcher& operator=(const FileWatcher&) = delete;

    // The first identity; the program cannot serve without it. Then watches.
    Result<void> start();
    void stop();
    // Looks now, without waiting for the interval.
    void look();

  private:
    void arm();

    boost::asio::steady_timer timer_;
    const FilePaths paths_;
    const std::shared_ptr<net::IdentityCell> cell_;
    const std::chrono::milliseconds interval_;
    net::Counter& reloads_;
    net::Counter& failures_;
    std::string seen_;     // digest of what the files held when the identity was made
    std::string refused_;  // digest of what was refused last, so that one bad pair is logged once
    bool stopped_ = false;
};

}  // namespace ossa::certs
