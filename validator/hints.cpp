#include "validator/hints.hpp"

#include <algorithm>

namespace ossa::validator {
namespace {

using yaml::RemarkKind;
using yaml::Scalar;
using yaml::Style;

std::string last_token(std::string_view pointer) {
    std::string out;
    const std::string_view token =
        pointer.substr(pointer.rfind('/') == std::string_view::npos ? 0 : pointer.rfind('/') + 1);
    for (std::size_t i = 0; i < token.size(); ++i) {
        if (token[i] == '~' && i + 1 < token.size()) {
            out.push_back(token[++i] == '1' ? '/' : '~');
        } else {
            out.push_back(token[i]);
        }
    }
    return out;
}

// `cpu: "2"`, or `- "2"` for an element.
std::string as_line(const kube::Finding& finding, const yaml::Spot& spot, const std::string& value) {
    return spot.key.known() ? last_token(finding.pointer) + ": " + value : "- " + value;
}

std::string in_quotes(std::string_view text) {
    std::string out;
    json::append_quoted(out, text);
    return out;
}

// "INVALID_Id" -> "invalid-id"; "" when nothing sensible is left.
std::string as_id(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            out.push_back(c);
        } else if (c >= 'A' && c <= 'Z') {
            out.push_back(static_cast<char>(c - 'A' + 'a'));
        } else if ((c == '-' || c == '_' || c == ' ' || c == '.' || c == '/') && !out.empty() && out.back() != '-') {
            out.push_back('-');
        }
    }
    while (!out.empty() && out.back() == '-') {
        out.pop_back();
    }
    return out.size() <= 63 ? out : std::string{};
}

// "v1.2" -> "1.2.0"; "" when it is no version with a part missing or too much.
std::string as_version(std::string_view text) {
    if (text.starts_with('v') || text.starts_with('V')) {
        text.remove_prefix(1);
    }
    const std::size_t tail = std::min(text.find_first_of("-+"), text.size());
    const std::string_view numbers = text.substr(0, tail);
    const auto dots = std::count(numbers.begin(), numbers.end(), '.');
    const bool sane = !numbers.empty() && numbers.find_first_not_of("0123456789.") == std::string_view::npos &&
                      numbers.front() != '.' && numbers.back() != '.' && numbers.find("..") == std::string_view::npos &&
                      (numbers.size() == 1 || numbers[0] != '0' || numbers[1] == '.');
    if (!sane || dots > 2) {
        return {};
    }
    std::string out{numbers};
    for (auto i = dots; i < 2; ++i) {
        out += ".0";
    }
    return out + std::string{text.substr(tail)};
}

bool ends_with(std::string_view text, std::string_view tail) {
    return text.ends_with(tail);
}

}  // namespace

std::string hint_for(const kube::Finding& finding, const yaml::Spot& spot) {
    if (!finding.member.empty()) {
        return finding.hint;
    }
    if (finding.rule == "schema/type") {
        const bool wants_text = finding.message.starts_with("must be a string");
        if (spot.empty()) {
            return spot.key.known() ? "remove the key " + last_token(finding.pointer) + ", or give it a value"
                                    : "remove the empty item, or give it a value";
        }
        if (spot.style == Style::plain && wants_text) {
            const Scalar read = yaml::resolve(spot.text);
            std::string hint = "put it in quotes: " + as_line(finding, spot, in_quotes(spot.text));
            if (read.kind == Scalar::Kind::boolean && spot.text != "true" && spot.text != "false") {
                hint = std::string{"kubectl reads "} + std::string{spot.text} + " as " +
                       (read.boolean ? "true" : "false") + "; " + hint;
            } else if (read.kind == Scalar::Kind::not_finite) {
                hint = "kubectl refuses " + std::string{spot.text} + "; " + hint;
            }
            return hint;
        }
        if (spot.style == Style::plain && yaml::resolve(spot.text).kind == Scalar::Kind::not_finite) {
            return "kubectl refuses " + std::string{spot.text} + ": write a number";
        }
        if (spot.style == Style::quoted) {
            const Scalar::Kind kind = yaml::resolve(spot.text).kind;
            const bool number = kind == Scalar::Kind::integer || kind == Scalar::Kind::number;
            const bool wants_number =
                finding.message.starts_with("must be an integer") || finding.message.starts_with("must be a number");
            const bool wants_bool = finding.message.starts_with("must be a boolean");
            if ((wants_number && number) || (wants_bool && kind == Scalar::Kind::boolean)) {
                return "write it without quotes: " + as_line(finding, spot, std::string{spot.text});
            }
        }
        return finding.hint;
    }
    if (finding.rule == "schema/enum" && finding.hint.empty() && spot.style == Style::plain &&
        yaml::resolve(spot.text).kind != Scalar::Kind::string && !spot.empty()) {
        return "put it in quotes: " + as_line(finding, spot, in_quotes(spot.text));
    }
    if (finding.rule == "schema/enum" && ends_with(finding.pointer, "/ossaVersion")) {
        return "this program knows OSSA 1.0";
    }
    if (finding.rule == "schema/enum" && finding.pointer == "/ossaVersion") {
        return "this program knows OSSA 1.0";
    }
    if (finding.rule == "schema/pattern" && finding.hint.empty()) {
        if (ends_with(finding.pointer, "/agent/id")) {
            const std::string id = as_id(spot.text);
            return "lower-case letters, digits and dashes" + (id.empty() ? "" : ": " + as_line(finding, spot, id));
        }
        if (ends_with(finding.pointer, "/agent/version")) {
            const std::string version = as_version(spot.text);
            return "three numbers as semver.org has them: " +
                   as_line(finding, spot, in_quotes(version.empty() ? "1.2.0" : version));
        }
    }
    return finding.hint;
}

kube::Finding finding_of(const yaml::Remark& remark) {
    kube::Finding finding;
    finding.pointer = remark.pointer;
    finding.cause = kube::CauseType::invalid;
    const std::string text = remark.text;
    const std::string key = last_token(remark.pointer);
    switch (remark.kind) {
        case RemarkKind::duplicate_key:
            finding.rule = "yaml/duplicate-key";
            finding.cause = kube::CauseType::duplicate;
            finding.message = "the key " + in_quotes(text) + " stands twice: line " +
                              std::to_string(remark.other.line) + " and line " + std::to_string(remark.place.line);
            finding.hint = "remove one of them; kubectl silently takes the last";
            break;
        case RemarkKind::not_finite:
            finding.rule = "yaml/not-finite";
            finding.message = "kubectl refuses " + text + ": JSON has no such number";
            finding.hint = "write a number, or put it in quotes";
            break;
        case RemarkKind::ignored_rest:
            finding.rule = "yaml/ignored-document";
            finding.message = "kubectl ignores what stands here: a document before it ended with ...";
            finding.hint = "put a line --- between the documents";
            break;
        case RemarkKind::boolean_key:
            finding.severity = kube::Severity::warning;
            finding.rule = "yaml/boolean-key";
            finding.message =
                "the unquoted key " + text + " becomes " + remark.became + ", since kubectl reads YAML 1.1";
            finding.hint = "put it in quotes: " + in_quotes(text) + ":";
            break;
        case RemarkKind::boolean_word:
            finding.severity = kube::Severity::warning;
            finding.rule = "yaml/boolean-word";
            finding.message = "kubectl reads " + text + " as " + remark.became + " (YAML 1.1), other tools as a text";
            finding.hint = "write " + remark.became + ", or put it in quotes: " + in_quotes(text);
            break;
        case RemarkKind::odd_number:
            finding.severity = kube::Severity::warning;
            finding.rule = "yaml/odd-number";
            finding.message = "kubectl reads " + text + " as " + remark.became + ", other tools do not";
            finding.hint = "write " + remark.became + ", or put it in quotes: " + in_quotes(text);
            break;
        case RemarkKind::merge_overrides:
            finding.severity = kube::Severity::warning;
            finding.rule = "yaml/merge-order";
            finding.message =
                "the merge key below changes " + in_quotes(text) + " for kubectl, although an explicit key should win";
            finding.hint = "put the << line first";
            break;
    }
    return finding;
}

}  // namespace ossa::validator
