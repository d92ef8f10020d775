#include "kube/types/api.hpp"

#include <cstdio>
#include <ctime>

namespace ossa::kube {
namespace {

ErrorCode code_of(unsigned code, std::string_view reason) {
    if (reason == "AlreadyExists") {
        return ErrorCode::already_exists;
    }
    if (reason == "Expired" || reason == "Gone") {
        return ErrorCode::gone;
    }
    switch (code) {
        case 400:
        case 415:
        case 422: return ErrorCode::invalid;
        case 401: return ErrorCode::unauthenticated;
        case 403: return ErrorCode::forbidden;
        case 404:
        case 405: return ErrorCode::not_found;
        case 408:
        case 504: return ErrorCode::deadline;
        case 409: return ErrorCode::conflict;
        case 410: return ErrorCode::gone;
        case 413: return ErrorCode::too_large;
        case 429: return ErrorCode::throttled;
        default: break;
    }
    return code >= 500 ? ErrorCode::unavailable : ErrorCode::internal;
}

std::string printed(const char* format, const std::tm& parts, long micros) {
    char text[64];
    const int size = std::snprintf(text, sizeof text, format, parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                                   parts.tm_hour, parts.tm_min, parts.tm_sec, micros);
    return {text, static_cast<std::size_t>(size)};
}

std::string time_text(std::chrono::system_clock::time_point time, bool micros) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const std::time_t whole = std::chrono::system_clock::to_time_t(seconds);
    std::tm parts{};
    gmtime_r(&whole, &parts);
    const long rest = static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(time - seconds).count());
    return micros ? printed("%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ", parts, rest)
                  : printed("%04d-%02d-%02dT%02d:%02d:%02dZ", parts, rest);
}

ApiRequest request(ApiVerb verb, std::string target, ApiBody kind = ApiBody::none, std::string body = {}) {
    return {.verb = verb, .target = std::move(target), .body_kind = kind, .body = std::move(body)};
}

}  // namespace

std::string_view to_string(ApiVerb verb) noexcept {
    switch (verb) {
        case ApiVerb::get: return "GET";
        case ApiVerb::post: return "POST";
        case ApiVerb::put: return "PUT";
        case ApiVerb::patch: return "PATCH";
        case ApiVerb::delete_: return "DELETE";
    }
    return "GET";
}

std::string_view content_type(ApiBody body) noexcept {
    switch (body) {
        case ApiBody::none: return "";
        case ApiBody::json: return "application/json";
        case ApiBody::merge_patch: return "application/merge-patch+json";
        case ApiBody::apply: return "application/apply-patch+yaml";
    }
    return "";
}

void append_escaped(std::string& out, std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (const char c : text) {
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
            c == '_' || c == '~') {
            out.push_back(c);
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out.push_back('%');
            out.push_back(digits[byte >> 4U]);
            out.push_back(digits[byte & 15U]);
        }
    }
}

std::string path_of(const ApiResource& resource, std::string_view namespace_, std::string_view name,
                    std::string_view subresource) {
    std::string out = resource.group.empty() ? "/api/" : "/apis/" + std::string(resource.group) + "/";
    out.append(resource.version);
    if (!namespace_.empty()) {
        out.append("/namespaces/");
        append_escaped(out, namespace_);
    }
    out.append("/").append(resource.plural);
    for (const std::string_view part : {name, subresource}) {
        if (!part.empty()) {
            out.push_back('/');
            append_escaped(out, part);
        }
    }
    return out;
}

ApiRequest get_request(const ApiResource& resource, const ObjectKey& key) {
    return request(ApiVerb::get, path_of(resource, key.namespace_, key.name));
}

ApiRequest list_request(const ApiResource& resource, std::string_view namespace_, unsigned limit,
                        std::string_view continue_token) {
    std::string target = path_of(resource, namespace_) + "?limit=" + std::to_string(limit);
    if (!continue_token.empty()) {
        target.append("&continue=");
        append_escaped(target, continue_token);
    }
    return request(ApiVerb::get, std::move(target));
}

ApiRequest watch_request(const ApiResource& resource, std::string_view namespace_, std::string_view from_version,
                         std::chrono::seconds timeout, bool initial) {
    std::string target = path_of(resource, namespace_) +
                         "?watch=1&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(timeout.count());
    if (initial) {
        target.append("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    } else {
        target.append("&resourceVersion=");
        append_escaped(target, from_version);
    }
    return request(ApiVerb::get, std::move(target));
}

ApiRequest create_request(const ApiResource& resource, std::string_view namespace_, std::string body) {
    return request(ApiVerb::post, path_of(resource, namespace_), ApiBody::json, std::move(body));
}

ApiRequest replace_request(const ApiResource& resource, const ObjectKey& key, std::string body) {
    return request(ApiVerb::put, path_of(resource, key.namespace_, key.name), ApiBody::json, std::move(body));
}

ApiRequest merge_patch_request(const ApiResource& resource, const ObjectKey& key, std::string_view subresource,
                               std::string body) {
    return request(ApiVerb::patch, path_of(resource, key.namespace_, key.name, subresource), ApiBody::merge_patch,
                   std::move(body));
}

ApiRequest apply_request(const ApiResource& resource, const ObjectKey& key, std::string_view subresource,
                         std::string_view manager, std::string body) {
    std::string target = path_of(resource, key.namespace_, key.name, subresource) + "?force=true&fieldManager=";
    append_escaped(target, manager);
    return request(ApiVerb::patch, std::move(target), ApiBody::apply, std::move(body));
}

ApiRequest delete_request(const ApiResource& resource, const ObjectKey& key) {
    return request(ApiVerb::delete_, path_of(resource, key.namespace_, key.name));
}

Error error_of_status(json::Value status, unsigned code_when_absent) {
    const auto code = static_cast<unsigned>(status.at("code").int64_or(code_when_absent));
    const std::string_view reason = status.at("reason").string_or("");
    const std::string_view message = status.at("message").string_or("");
    std::string text = std::to_string(code);
    for (const std::string_view part : {reason, message}) {
        if (!part.empty()) {
            text.append(" ").append(part.substr(0, 1000));
        }
    }
    Error error{code_of(code, reason), std::move(text)};
    if (const auto seconds = status.at("details").at("retryAfterSeconds").as_int64(); seconds && *seconds > 0) {
        error = std::move(error).after(std::chrono::seconds(*seconds));
    }
    return error;
}

Error error_of_answer(unsigned http_status, std::string_view body, std::optional<std::chrono::seconds> retry_after) {
    const auto document = json::Document::from(body);
    const json::Value status = document ? document->root() : json::Value{};
    Error error =
        status.at("kind").string_or("") == "Status"
            ? error_of_status(status, http_status)
            : Error{code_of(http_status, ""), std::to_string(http_status) + " " + std::string(body.substr(0, 200))};
    if (retry_after) {
        error = std::move(error).after(*retry_after);
    }
    return error;
}

std::string micro_time(std::chrono::system_clock::time_point time) {
    return time_text(time, true);
}

std::string second_time(std::chrono::system_clock::time_point time) {
    return time_text(time, false);
}

}  // namespace ossa::kube
