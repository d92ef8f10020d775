#include "kube/types/finding.hpp"

#include <algorithm>
#include <cctype>

namespace ossa::kube {
namespace {

struct CauseWords {
    std::string_view reason;  // in Status.details.causes
    std::string_view prose;   // at the start of the message
};

CauseWords words_of(CauseType type) noexcept {
    switch (type) {
        case CauseType::invalid: return {"FieldValueInvalid", "Invalid value"};
        case CauseType::required: return {"FieldValueRequired", "Required value"};
        case CauseType::not_supported: return {"FieldValueNotSupported", "Unsupported value"};
        case CauseType::duplicate: return {"FieldValueDuplicate", "Duplicate value"};
        case CauseType::type_invalid: return {"FieldValueTypeInvalid", "Invalid value"};
        case CauseType::forbidden: return {"FieldValueForbidden", "Forbidden"};
        case CauseType::too_long: return {"FieldValueTooLong", "Too long"};
        case CauseType::not_found: return {"FieldValueNotFound", "Not found"};
    }
    return {"FieldValueInvalid", "Invalid value"};
}

// Names of users can be as long as a document; an answer must not be.
constexpr std::size_t token_bytes_max = 128;

std::string clipped(std::string_view token) {
    std::size_t keep = token_bytes_max;
    if (token.size() <= keep) {
        return std::string(token);
    }
    while (keep > 0 && (static_cast<unsigned char>(token[keep]) & 0xC0U) == 0x80U) {
        --keep;
    }
    return std::string(token.substr(0, keep)) + "…";
}

void append_step(std::string& out, std::string_view token) {
    const auto all = [&](auto allowed) { return !token.empty() && std::all_of(token.begin(), token.end(), allowed); };
    if (all([](unsigned char c) { return std::isdigit(c) != 0; })) {
        out.append("[").append(token).append("]");
    } else if (all([](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; })) {
        if (!out.empty()) {
            out.push_back('.');
        }
        out.append(token);
    } else {
        out.push_back('[');
        json::append_quoted(out, token);
        out.push_back(']');
    }
}

}  // namespace

std::string_view to_string(CauseType type) noexcept {
    return words_of(type).reason;
}

std::string field_path(std::string_view pointer, std::string_view member) {
    std::string out;
    while (!pointer.empty()) {
        pointer.remove_prefix(1);
        const std::size_t end = std::min(pointer.find('/'), pointer.size());
        std::string token;
        for (std::size_t i = 0; i < end && i < 2 * token_bytes_max; ++i) {
            if (pointer[i] == '~' && i + 1 < end) {
                token.push_back(pointer[++i] == '1' ? '/' : '~');
            } else {
                token.push_back(pointer[i]);
            }
        }
        append_step(out, clipped(token));
        pointer.remove_prefix(end);
    }
    if (!member.empty()) {
        append_step(out, clipped(member));
    }
    return out.empty() ? "<root>" : out;
}

std::string cause_message(const Finding& finding) {
    std::string out{words_of(finding.cause).prose};
    if (finding.cause != CauseType::required && !finding.found.empty()) {
        out.append(": ").append(finding.found);
    }
    if (!finding.message.empty()) {
        out.append(": ").append(finding.message);
    }
    if (!finding.hint.empty()) {
        out.append(" (").append(finding.hint).append(")");
    }
    return out;
}

std::string to_line(const Finding& finding) {
    return field_path(finding.pointer, finding.member) + ": " + cause_message(finding);
}

}  // namespace ossa::kube
