// files: the server's identity from files, and a watcher that follows them.
// The watcher compares what the files hold, not their times, so every way of replacing them works (a Secret's symbolic
// link, a copy in place). A pair that is half written, or does not fit, changes nothing: the old identity stays, the
// refusal is logged and counted, and the next look tries again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/tls.hpp"

namespace ossa::net {
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

// Publishes a new identity into `cell` when the files hold one. Its short file reads happen on the thread that runs
// `context`: give it one that no request waits for. The watcher itself may be used and ended on any thread, also while
// that one runs; it must end before `context` and `metrics` do.
class FileWatcher {
  public:
    FileWatcher(boost::asio::io_context& context, FilePaths paths, std::shared_ptr<net::IdentityCell> cell,
                net::Metrics& metrics, std::chrono::milliseconds interval = std::chrono::seconds{10});
    ~FileWatcher();  // stops
    FileWatcher(const FileWatcher&) = delete;
    FileWatcher& operator=(const FileWatcher&) = delete;

    // The first identity; the program cannot serve without it. Then watches.
    Result<void> start();
    // Ends the watch; waits for a look that is under way.
    void stop();
    // Looks now, without waiting for the interval.
    void look();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace ossa::certs
