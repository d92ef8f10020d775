#include "kube/types/admission.hpp"

#include <algorithm>

namespace ossa::kube {
namespace {

constexpr std::size_t causes_max = 100;
constexpr std::size_t warning_chars_max = 200;
constexpr std::size_t warnings_max = 15;
constexpr std::size_t warnings_chars_max = 4096;

Operation operation_of(std::string_view word) noexcept {
    if (word == "CREATE") {
        return Operation::create;
    }
    if (word == "UPDATE") {
        return Operation::update;
    }
    if (word == "DELETE") {
        return Operation::remove;
    }
    return word == "CONNECT" ? Operation::connect : Operation::unknown;
}

json::Value unless_null(json::Value value) {
    return value.is_null() ? json::Value{} : value;
}

void append_head(std::string& out, std::string_view uid, bool allowed) {
    out.append(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":)");
    json::append_quoted(out, uid);
    out.append(allowed ? R"(,"allowed":true)" : R"(,"allowed":false)");
}

void append_tail(std::string& out, std::span<const std::string> warnings, const Annotations& annotations) {
    if (!warnings.empty()) {
        out.append(R"(,"warnings":)");
        char before = '[';
        for (const std::string& warning : warnings) {
            out.push_back(before);
            before = ',';
            json::append_quoted(out, warning);
        }
        out.push_back(']');
    }
    if (!annotations.empty()) {
        out.append(R"(,"auditAnnotations":)");
        char before = '{';
        for (const auto& [key, value] : annotations) {
            out.push_back(before);
            before = ',';
            json::append_quoted(out, key);
            out.push_back(':');
            json::append_quoted(out, value);
        }
        out.push_back('}');
    }
    out.append("}}");
}

void append_member(std::string& out, std::string_view name, std::string_view value) {
    out.push_back('"');
    out.append(name).append("\":");
    json::append_quoted(out, value);
}

}  // namespace

std::string_view to_string(Operation operation) noexcept {
    switch (operation) {
        case Operation::create: return "CREATE";
        case Operation::update: return "UPDATE";
        case Operation::remove: return "DELETE";
        case Operation::connect: return "CONNECT";
        case Operation::unknown: return "UNKNOWN";
    }
    return "UNKNOWN";
}

Result<AdmissionRequest> decode_admission_review(json::Value root) {
    AdmissionRequest out;
    const auto [review_kind, api_version, request] = json::pick(root, "kind", "apiVersion", "request");
    if (review_kind.string_or("") != "AdmissionReview") {
        return failure(ErrorCode::invalid, "the body is no AdmissionReview");
    }
    if (api_version.string_or("") != "admission.k8s.io/v1") {
        return failure(ErrorCode::invalid, "AdmissionReview must have apiVersion admission.k8s.io/v1");
    }
    if (!request.is_object()) {
        return failure(ErrorCode::invalid, "AdmissionReview has no request");
    }
    const auto [uid, kind, resource, sub_resource, name, namespace_, operation, user, object, old_object, dry_run] =
        json::pick(request, "uid", "kind", "resource", "subResource", "name", "namespace", "operation", "userInfo",
                   "object", "oldObject", "dryRun");
    const auto [kind_group, kind_version, kind_kind] = json::pick(kind, "group", "version", "kind");
    const auto [resource_group, resource_resource] = json::pick(resource, "group", "resource");
    out.uid = uid.string_or("");
    out.kind = {kind_group.string_or(""), kind_version.string_or(""), kind_kind.string_or("")};
    out.resource_group = resource_group.string_or("");
    out.resource = resource_resource.string_or("");
    out.sub_resource = sub_resource.string_or("");
    out.name = name.string_or("");
    out.namespace_ = namespace_.string_or("");
    out.user = user.at("username").string_or("");
    out.operation = operation_of(operation.string_or(""));
    out.dry_run = dry_run.bool_or(false);
    out.object = unless_null(object);
    out.old_object = unless_null(old_object);
    if (out.uid.empty()) {
        return failure(ErrorCode::invalid, "AdmissionReview has no request.uid");
    }
    return out;
}

void append_allowed(std::string& out, std::string_view uid, std::string_view patch,
                    std::span<const std::string> warnings, const Annotations& annotations) {
    append_head(out, uid, true);
    if (!patch.empty()) {
        out.append(R"(,"patchType":"JSONPatch","patch":")");
        append_base64(out, patch);
        out.push_back('"');
    }
    append_tail(out, warnings, annotations);
}

void append_denied(std::string& out, std::string_view uid, const Denial& denial, std::span<const std::string> warnings,
                   const Annotations& annotations) {
    append_head(out, uid, false);
    out.append(R"(,"status":{"status":"Failure","code":)").append(std::to_string(denial.code)).append(",");
    append_member(out, "reason", denial.reason);
    out.push_back(',');
    append_member(out, "message", denial.message);
    if (denial.causes != nullptr || denial.retry_after_seconds > 0) {
        out.append(R"(,"details":{)");
        append_member(out, "name", denial.name);
        out.push_back(',');
        append_member(out, "group", denial.group);
        out.push_back(',');
        append_member(out, "kind", denial.kind);
        if (denial.retry_after_seconds > 0) {
            out.append(R"(,"retryAfterSeconds":)").append(std::to_string(denial.retry_after_seconds));
        }
        if (denial.causes != nullptr) {
            out.append(R"(,"causes":[)");
            std::size_t n = 0;
            for (const Finding& finding : *denial.causes) {
                if (n == causes_max) {
                    break;
                }
                out.append(n++ == 0 ? "{" : ",{");
                append_member(out, "reason", to_string(finding.cause));
                out.push_back(',');
                append_member(out, "message", cause_message(finding));
                out.push_back(',');
                append_member(out, "field", field_path(finding.pointer, finding.member));
                out.push_back('}');
            }
            out.push_back(']');
        }
        out.push_back('}');
    }
    out.push_back('}');
    append_tail(out, warnings, annotations);
}

std::string denial_message(std::string_view kind, std::string_view name, const Findings& errors, std::size_t shown) {
    std::string out;
    out.append(kind).append(" ");
    json::append_quoted(out, name);
    out.append(" is invalid: ");
    for (std::size_t i = 0; i < errors.size() && i < shown; ++i) {
        out.append(i == 0 ? "" : "; ").append(to_line(errors[i]));
    }
    if (errors.size() > shown) {
        out.append("; and ").append(std::to_string(errors.size() - shown)).append(" more");
    }
    return out;
}

std::string admission_warning(const Finding& finding) {
    std::string line = field_path(finding.pointer, finding.member) + ": " + finding.message;
    if (!finding.hint.empty()) {
        line.append(" (").append(finding.hint).append(")");
    }
    // The API server drops a warning with a control character without a word.
    for (char& c : line) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            c = ' ';
        }
    }
    return line;
}

namespace {

// Counts and cuts in code points; the mark is one.
std::string cut(std::string line, std::size_t chars_max) {
    std::size_t chars = 0;
    std::size_t keep = 0;  // bytes of the first chars_max - 1 characters
    for (std::size_t i = 0; i < line.size(); ++i) {
        if ((static_cast<unsigned char>(line[i]) & 0xC0U) == 0x80U) {
            continue;
        }
        if (chars == chars_max - 1) {
            keep = i;
        }
        if (++chars > chars_max) {
            line.resize(keep);
            line.append("…");
            break;
        }
    }
    return line;
}

}  // namespace

std::vector<std::string> admission_warnings(const Findings& warnings) {
    std::vector<std::string> out;
    std::size_t bytes = 0;  // the API server counts bytes; so does this, which is at least as strict
    const std::size_t last_line = 64;
    for (const Finding& finding : warnings) {
        std::string line = cut(admission_warning(finding), warning_chars_max);
        const bool is_last = out.size() + 1 == warnings.size();
        if (out.size() + 1 >= warnings_max + (is_last ? 1U : 0U) ||
            bytes + line.size() + last_line > warnings_chars_max) {
            out.push_back("and " + std::to_string(warnings.size() - out.size()) + " more: run ossa-validator");
            break;
        }
        bytes += line.size();
        out.push_back(std::move(line));
    }
    return out;
}

void append_base64(std::string& out, std::string_view bytes) {
    static constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t start = out.size();
    out.resize(start + (bytes.size() + 2) / 3 * 4);
    char* to = out.data() + start;
    const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
    std::size_t left = bytes.size();
    for (; left >= 3; left -= 3, from += 3) {
        const std::uint32_t group = std::uint32_t{from[0]} << 16U | std::uint32_t{from[1]} << 8U | from[2];
        *to++ = alphabet[group >> 18U];
        *to++ = alphabet[group >> 12U & 63U];
        *to++ = alphabet[group >> 6U & 63U];
        *to++ = alphabet[group & 63U];
    }
    if (left > 0) {
        const std::uint32_t group = std::uint32_t{from[0]} << 16U | (left == 2 ? std::uint32_t{from[1]} << 8U : 0U);
        *to++ = alphabet[group >> 18U];
        *to++ = alphabet[group >> 12U & 63U];
        *to++ = left == 2 ? alphabet[group >> 6U & 63U] : '=';
        *to = '=';
    }
}

}  // namespace ossa::kube
