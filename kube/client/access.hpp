// ClusterAccess: where the API server is and who we are there.
//
// From a kubeconfig (certificate, token, their files; no exec plugins, no basic auth) or from a Pod's service account.
// Files that a cluster rotates (token, CA) are read again while the program runs: kube/client/api_client.hpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ossa::kube {

struct ClusterAccess {
    std::string host, port;
    std::string server_name;  // what the server's certificate must be for
    std::string path_prefix;  // before every path; mostly empty
    std::string ca_pem;
    std::string ca_file;  // read again when it changes; empty: ca_pem stays
    bool skip_verify = false;
    std::string certificate_pem, key_pem;
    std::string token;
    std::string token_file;  // read again; empty: token stays
    std::string namespace_ = "default";
    std::string origin;  // for messages
};

// context "": the current one. Errors: not_found (no such file), invalid (the message says what and where).
Result<ClusterAccess> read_kubeconfig(const std::filesystem::path& file, std::string_view context = {});
Result<ClusterAccess> parse_kubeconfig(std::string_view text, const std::filesystem::path& folder,
                                       std::string_view context = {});
// Of a Pod: KUBERNETES_SERVICE_HOST and the mounted service account.
Result<ClusterAccess> service_account(
    const std::filesystem::path& folder = "/var/run/secrets/kubernetes.io/serviceaccount");
// The flag, else $KUBECONFIG, else the service account.
Result<ClusterAccess> find_access(const std::string& kubeconfig_flag);

Result<std::string> read_small_file(const std::filesystem::path& file, std::size_t bytes_max = std::size_t{1} << 20);

}  // namespace ossa::kube
