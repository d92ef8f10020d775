// What is said to the API server and what it says back, as bytes: paths, queries, Status. No I/O.
//
// Source: Kubernetes API concepts (resource URIs, list and watch parameters, Status), RFC 3986 for escapes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"

namespace ossa::kube {

struct ObjectKey {
    std::string namespace_, name;
    auto operator<=>(const ObjectKey&) const = default;
};

struct ApiResource {
    std::string_view group;  // "" is the core group
    std::string_view version;
    std::string_view plural;
    std::string_view kind;
};
inline constexpr ApiResource agents{"ossa.ai", "v1", "agents", "Agent"};
inline constexpr ApiResource tenant_quotas{"ossa.ai", "v1", "tenantquotas", "TenantQuota"};
inline constexpr ApiResource namespaces{"", "v1", "namespaces", "Namespace"};
inline constexpr ApiResource leases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr ApiResource events{"events.k8s.io", "v1", "events", "Event"};
inline constexpr ApiResource network_policies{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};
inline constexpr ApiResource resource_quotas{"", "v1", "resourcequotas", "ResourceQuota"};

enum class ApiVerb : std::uint8_t { get, post, put, patch, delete_ };
std::string_view to_string(ApiVerb verb) noexcept;

enum class ApiBody : std::uint8_t { none, json, merge_patch, apply };
std::string_view content_type(ApiBody body) noexcept;

// One request, but for its connection, credentials and deadline.
struct ApiRequest {
    ApiVerb verb = ApiVerb::get;
    std::string target;  // path and query
    ApiBody body_kind = ApiBody::none;
    std::string body;
};

// "/apis/ossa.ai/v1/namespaces/team/agents/scanner/status"; without a namespace those of all namespaces.
std::string path_of(const ApiResource& resource, std::string_view namespace_ = {}, std::string_view name = {},
                    std::string_view subresource = {});
// Unreserved characters of RFC 3986 stay, everything else becomes %XX.
void append_escaped(std::string& out, std::string_view text);

ApiRequest get_request(const ApiResource& resource, const ObjectKey& key);
// One page of a list that comes straight from etcd (resourceVersion unset).
inline constexpr unsigned list_page_size = 500;
ApiRequest list_request(const ApiResource& resource, std::string_view namespace_, unsigned limit,
                        std::string_view continue_token = {});
// Bookmarks are asked for. initial: what there is comes first, as ADDED events, and then a bookmark that says so
// (KEP-3157); from_version is empty then.
ApiRequest watch_request(const ApiResource& resource, std::string_view namespace_, std::string_view from_version,
                         std::chrono::seconds timeout, bool initial = false);
ApiRequest create_request(const ApiResource& resource, std::string_view namespace_, std::string body);
ApiRequest replace_request(const ApiResource& resource, const ObjectKey& key, std::string body);
ApiRequest merge_patch_request(const ApiResource& resource, const ObjectKey& key, std::string_view subresource,
                               std::string body);
// Server-side apply as field manager `manager`, taking fields from others.
ApiRequest apply_request(const ApiResource& resource, const ObjectKey& key, std::string_view subresource,
                         std::string_view manager, std::string body);
ApiRequest delete_request(const ApiResource& resource, const ObjectKey& key);

// What a caller should make of an answer that is no success. `body` is a Status, or anything else.
Error error_of_answer(unsigned http_status, std::string_view body,
                      std::optional<std::chrono::seconds> retry_after = {});
// The same of a Status that came as an ERROR event of a watch.
Error error_of_status(json::Value status, unsigned code_when_absent = 500);

// RFC 3339 with microseconds, as Lease has it ("2026-12-07T01:02:03.000004Z"), and without ("…03Z").
std::string micro_time(std::chrono::system_clock::time_point time);
std::string second_time(std::chrono::system_clock::time_point time);

}  // namespace ossa::kube
