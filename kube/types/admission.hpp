// AdmissionReview (admission.k8s.io/v1): decoded for judging, and the answers written as text.
// Source: k8s.io/api/admission/v1; how the API server reads answers: k8s.io/apiserver pkg/admission/plugin/webhook.
// The request's views live as long as the Document they were decoded from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "kube/types/finding.hpp"

namespace ossa::kube {

enum class Operation : std::uint8_t { create, update, remove, connect, unknown };
std::string_view to_string(Operation operation) noexcept;

struct GroupVersionKind {
    std::string_view group, version, kind;
};

struct AdmissionRequest {
    std::string_view uid;
    GroupVersionKind kind;
    std::string_view resource_group, resource, sub_resource;
    std::string_view name;        // empty on a create by generateName
    std::string_view namespace_;  // from the request: the object may not have it yet
    std::string_view user;
    Operation operation = Operation::unknown;
    bool dry_run = false;
    json::Value object, old_object;  // absent when null
};

// Errors: invalid, when it is no AdmissionReview of version v1 with a request and a uid.
Result<AdmissionRequest> decode_admission_review(json::Value root);

// What becomes Status of a denial.
struct Denial {
    int code = 422;
    std::string_view reason = "Invalid";
    std::string message;
    const Findings* causes = nullptr;  // listed in details when set
    std::string_view group, kind, name;
    int retry_after_seconds = 0;  // 0: none
};

using Annotations = std::vector<std::pair<std::string_view, std::string>>;  // audit; keys without slash

// The answers, appended to out. patch: JSONPatch text, "" for none. Warnings must already be within the API's limits.
void append_allowed(std::string& out, std::string_view uid, std::string_view patch,
                    std::span<const std::string> warnings, const Annotations& annotations);
void append_denied(std::string& out, std::string_view uid, const Denial& denial, std::span<const std::string> warnings,
                   const Annotations& annotations);

// All findings on one line: kubectl shows only the message when several objects fail. At most `shown`, then "and N
// more".
std::string denial_message(std::string_view kind, std::string_view name, const Findings& errors,
                           std::size_t shown = 20);
// Findings as admission warnings within the API's limits: 200 characters each, no control characters, 15 lines, 4,096
// characters in all; the last line says what was left out.
std::vector<std::string> admission_warnings(const Findings& warnings);
// One finding as such a line, before cutting the list.
std::string admission_warning(const Finding& finding);

void append_base64(std::string& out, std::string_view bytes);

}  // namespace ossa::kube
