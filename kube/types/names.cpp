#include "kube/types/names.hpp"

namespace ossa::kube {
namespace {

constexpr std::string_view too_long = "is too long";
constexpr std::string_view empty = "must not be empty";
constexpr std::string_view label_1035 =
    "must consist of a-z, 0-9 and '-', start with a letter and end with a letter or digit";
constexpr std::string_view label_1123 = "must consist of a-z, 0-9 and '-', and start and end with a letter or digit";
constexpr std::string_view prefix_1035 = "must consist of a-z, 0-9 and '-', and start with a letter";
constexpr std::string_view subdomain_1123 =
    "must consist of a-z, 0-9, '-' and '.', each part between dots starting and ending with a letter or digit";

constexpr bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
constexpr bool is_alnum(char c) {
    return is_lower(c) || (c >= '0' && c <= '9');
}

bool is_label(std::string_view text) noexcept {
    if (text.empty() || !is_alnum(text.front()) || !is_alnum(text.back())) {
        return false;
    }
    for (const char c : text) {
        if (!is_alnum(c) && c != '-') {
            return false;
        }
    }
    return true;
}

NameProblem by_length(std::string_view text, std::size_t length_max) noexcept {
    if (text.empty()) {
        return empty;
    }
    return text.size() > length_max ? NameProblem{too_long} : std::nullopt;
}

}  // namespace

NameProblem dns1035_label(std::string_view text, std::size_t length_max) noexcept {
    if (const NameProblem problem = by_length(text, length_max)) {
        return problem;
    }
    return is_label(text) && is_lower(text.front()) ? std::nullopt : NameProblem{label_1035};
}

NameProblem dns1035_prefix(std::string_view text, std::size_t length_max) noexcept {
    if (const NameProblem problem = by_length(text, length_max)) {
        return problem;
    }
    while (text.size() > 1 && text.back() == '-') {
        text.remove_suffix(1);
    }
    return is_label(text) && is_lower(text.front()) ? std::nullopt : NameProblem{prefix_1035};
}

NameProblem dns1123_label(std::string_view text, std::size_t length_max) noexcept {
    if (const NameProblem problem = by_length(text, length_max)) {
        return problem;
    }
    return is_label(text) ? std::nullopt : NameProblem{label_1123};
}

NameProblem dns1123_subdomain(std::string_view text, std::size_t length_max) noexcept {
    if (const NameProblem problem = by_length(text, length_max)) {
        return problem;
    }
    while (true) {
        const std::size_t dot = text.find('.');
        if (!is_label(text.substr(0, dot))) {
            return subdomain_1123;
        }
        if (dot == std::string_view::npos) {
            return std::nullopt;
        }
        text.remove_prefix(dot + 1);
    }
}

}  // namespace ossa::kube
