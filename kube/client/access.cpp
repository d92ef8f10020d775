#include "kube/client/access.hpp"

#include <openssl/evp.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/yaml.hpp"

namespace ossa::kube {
namespace {

namespace fs = std::filesystem;
using json::Value;

Result<std::string> decode_base64(std::string_view text, std::string_view what) {
    std::string clean;
    for (const char c : text) {
        if (c != '\n' && c != '\r' && c != ' ') {
            clean.push_back(c);
        }
    }
    std::string out(clean.size(), '\0');
    const int size =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(clean.data()), static_cast<int>(clean.size()));
    if (size < 0) {
        return failure(ErrorCode::invalid, std::string(what) + " is not base64");
    }
    std::size_t length = static_cast<std::size_t>(size);  // counts the padding as zeros
    for (std::size_t at = clean.size(); at > 0 && clean[at - 1] == '='; --at) {
        --length;
    }
    out.resize(length);
    return out;
}

// `name`-data in base64, or the file that `name` tells, relative to the kubeconfig.
Result<std::string> data_or_file(Value object, const std::string& name, const fs::path& folder) {
    const std::string data = text_of(object.at(name + "-data"));
    if (!data.empty()) {
        return decode_base64(data, name + "-data");
    }
    const std::string file = text_of(object.at(name));
    return file.empty() ? Result<std::string>{std::string{}} : read_small_file(folder / file);
}

Result<Value> named(Value list, std::string_view name, std::string_view member, std::string_view what) {
    for (const Value entry : list.elements()) {
        if (entry.at("name").string_or("") == name) {
            return entry.at(member);
        }
    }
    return failure(ErrorCode::invalid, "it has no " + std::string(what) + " named \"" + std::string(name) + "\"");
}

Result<void> read_server(std::string url, ClusterAccess& out) {
    constexpr std::string_view scheme = "https://";
    if (url.rfind(scheme, 0) != 0) {
        return failure(ErrorCode::invalid, "server \"" + url + "\" does not begin with https://");
    }
    url.erase(0, scheme.size());
    const std::size_t slash = url.find('/');
    if (slash != std::string::npos) {
        out.path_prefix = url.substr(slash);
        while (!out.path_prefix.empty() && out.path_prefix.back() == '/') {
            out.path_prefix.pop_back();
        }
        url.resize(slash);
    }
    const std::size_t bracket = url.rfind(']');
    const std::size_t colon = url.rfind(':');
    const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
    out.port = has_port ? url.substr(colon + 1) : "443";
    out.host = has_port ? url.substr(0, colon) : url;
    if (out.host.size() > 1 && out.host.front() == '[' && out.host.back() == ']') {
        out.host = out.host.substr(1, out.host.size() - 2);
    }
    if (out.host.empty() || out.port.empty()) {
        return failure(ErrorCode::invalid, "server \"" + url + "\" has no host or no port");
    }
    out.server_name = out.host;
    return {};
}

}  // namespace

Result<std::string> read_small_file(const fs::path& file, std::size_t bytes_max) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
        return failure(ErrorCode::not_found, "cannot read " + file.string());
    }
    std::string out;
    std::vector<char> piece(std::size_t{64} << 10);
    while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
        out.append(piece.data(), static_cast<std::size_t>(in.gcount()));
        if (out.size() > bytes_max) {
            return failure(ErrorCode::too_large,
                           file.string() + " has more than " + std::to_string(bytes_max) + " bytes");
        }
    }
    return out;
}

Result<ClusterAccess> parse_kubeconfig(std::string_view text, const fs::path& folder, std::string_view context) {
    yaml::Splitter splitter(text);
    const auto part = splitter.next();
    yaml::Document document;
    if (!part) {
        return failure(ErrorCode::invalid, "it is empty");
    }
    if (const auto problem = document.read(*part, {})) {
        return failure(ErrorCode::invalid, "line " + std::to_string(problem->place.line) + ": " + problem->message);
    }
    const Value root = document.root();
    const std::string chosen = context.empty() ? text_of(root.at("current-context")) : std::string(context);
    if (chosen.empty()) {
        return failure(ErrorCode::invalid, "it names no current-context");
    }
    OSSA_TRY(const Value found, named(root.at("contexts"), chosen, "context", "context"));
    OSSA_TRY(const Value cluster, named(root.at("clusters"), found.at("cluster").string_or(""), "cluster", "cluster"));
    OSSA_TRY(const Value user, named(root.at("users"), found.at("user").string_or(""), "user", "user"));

    ClusterAccess out;
    OSSA_CHECK(read_server(text_of(cluster.at("server")), out));
    if (const std::string name = text_of(cluster.at("tls-server-name")); !name.empty()) {
        out.server_name = name;
    }
    out.skip_verify = cluster.at("insecure-skip-tls-verify").bool_or(false);
    OSSA_TRY(out.ca_pem, data_or_file(cluster, "certificate-authority", folder));
    OSSA_TRY(out.certificate_pem, data_or_file(user, "client-certificate", folder));
    OSSA_TRY(out.key_pem, data_or_file(user, "client-key", folder));
    out.token = text_of(user.at("token"));
    if (const std::string file = text_of(user.at("tokenFile")); !file.empty()) {
        out.token_file = (folder / file).string();
        OSSA_TRY(out.token, read_small_file(out.token_file));
    }
    if (user.at("exec").exists() && out.token.empty() && out.certificate_pem.empty()) {
        return failure(ErrorCode::invalid,
                       "user \"" + text_of(found.at("user")) +
                           "\" needs an exec plugin, which is not supported: give a token or a certificate");
    }
    out.namespace_ = found.at("namespace").string_or("default");
    return out;
}

Result<ClusterAccess> read_kubeconfig(const fs::path& file, std::string_view context) {
    OSSA_TRY(const std::string text, read_small_file(file));
    auto out = parse_kubeconfig(text, file.parent_path(), context);
    if (!out) {
        return unexpected(std::move(out).error().with("kubeconfig " + file.string()));
    }
    out->origin = "kubeconfig " + file.string();
    return out;
}

Result<ClusterAccess> service_account(const fs::path& folder) {
    const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
    const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
    if (host == nullptr || port == nullptr) {
        return failure(ErrorCode::not_found,
                       "no kubeconfig was given and this is no Pod: set --kubeconfig or $KUBECONFIG");
    }
    ClusterAccess out;
    out.host = host;
    out.port = port;
    out.server_name = host;
    out.ca_file = (folder / "ca.crt").string();
    out.token_file = (folder / "token").string();
    OSSA_TRY(out.ca_pem, read_small_file(out.ca_file));
    OSSA_TRY(out.token, read_small_file(out.token_file));
    if (auto name = read_small_file(folder / "namespace")) {
        out.namespace_ = *std::move(name);
    }
    out.origin = "service account";
    return out;
}

Result<ClusterAccess> find_access(const std::string& kubeconfig_flag) {
    if (!kubeconfig_flag.empty()) {
        return read_kubeconfig(kubeconfig_flag);
    }
    const char* const variable = std::getenv("KUBECONFIG");
    if (variable != nullptr && *variable != '\0') {
        return read_kubeconfig(variable);
    }
    return service_account();
}

}  // namespace ossa::kube
