#include "validator/judge.hpp"

#include <algorithm>
#include <map>

#include "schema/schemas.hpp"
#include "schema/text.hpp"
#include "validator/examples.hpp"
#include "validator/hints.hpp"
#include "validator/yaml_writer.hpp"

namespace ossa::validator {
namespace {

using json::Value;
using kube::Severity;

enum class Sort : std::uint8_t { agent, tenant_quota, ossa, list, skip, wrong };

struct Known {
    Sort sort = Sort::skip;
    std::string what;       // skip: what it is
    kube::Finding finding;  // wrong
};

constexpr std::string_view group = "ossa.ai/";
constexpr std::string_view api_version = "ossa.ai/v1";

Known skip(std::string what) {
    Known known;
    known.what = std::move(what);
    return known;
}

Known wrong(std::string rule, std::string pointer, std::string member, std::string found, std::string message,
            std::string hint) {
    Known known;
    known.sort = Sort::wrong;
    known.finding.rule = std::move(rule);
    known.finding.cause = member.empty() ? kube::CauseType::not_supported : kube::CauseType::required;
    known.finding.pointer = std::move(pointer);
    known.finding.member = std::move(member);
    known.finding.found = std::move(found);
    known.finding.message = std::move(message);
    known.finding.hint = std::move(hint);
    return known;
}

std::string with_article(json::Type type) {
    switch (type) {
        case json::Type::array: return "a list";
        case json::Type::string: return "a text";
        case json::Type::number: return "a number";
        case json::Type::boolean: return "a boolean";
        default: return "no object";
    }
}

// What has neither ossaVersion nor apiVersion and kind.
std::string other_format(Value root) {
    if (root.at("openapi").is_string() || root.at("swagger").is_string()) {
        return "an OpenAPI document";
    }
    if (root.at("skills").is_array() && root.at("url").is_string()) {
        return "an A2A agent card";
    }
    if (root.at("$schema").is_string()) {
        return "a JSON schema or a file with one";
    }
    return "no manifest (neither apiVersion and kind, nor ossaVersion)";
}

Known of_our_group(Value object, const std::string& pointer, std::string_view version, std::string_view kind) {
    if (version != api_version) {
        return wrong("input/api-version", pointer + "/apiVersion", "", json::excerpt(object.at("apiVersion")),
                     "this version is not served, supported: \"ossa.ai/v1\"", "apiVersion: ossa.ai/v1");
    }
    if (kind == "Agent") {
        return {.sort = Sort::agent, .what = {}, .finding = {}};
    }
    if (kind == "TenantQuota") {
        return {.sort = Sort::tenant_quota, .what = {}, .finding = {}};
    }
    if ((kind == "AgentList" || kind == "TenantQuotaList") && object.at("items").is_array()) {
        return {.sort = Sort::list, .what = {}, .finding = {}};
    }
    constexpr std::string_view kinds[] = {"Agent", "TenantQuota"};
    const auto nearest = schema::nearest_name(kind, kinds);
    return wrong("input/kind", pointer + "/kind", "", json::excerpt(object.at("kind")),
                 "ossa.ai/v1 has no such kind, supported: \"Agent\", \"TenantQuota\"",
                 nearest ? "did you mean kind: " + std::string{*nearest} + "?" : "");
}

Known classify(Value object, const std::string& pointer, TakeAs take_as) {
    switch (take_as) {
        case TakeAs::automatic: break;
        case TakeAs::ossa: return {.sort = Sort::ossa, .what = {}, .finding = {}};
        case TakeAs::agent: return {.sort = Sort::agent, .what = {}, .finding = {}};
        case TakeAs::tenant_quota: return {.sort = Sort::tenant_quota, .what = {}, .finding = {}};
    }
    if (!object.is_object()) {
        return skip(with_article(object.type()));
    }
    const std::string_view version = object.at("apiVersion").string_or("");
    const std::string_view kind = object.at("kind").string_or("");
    if (version.starts_with(group) || version == "ossa.ai") {
        return of_our_group(object, pointer, version, kind);
    }
    if (object.at("ossaVersion").exists() || (object.at("agent").is_object() && kind.empty())) {
        return {.sort = Sort::ossa, .what = {}, .finding = {}};
    }
    if (version.starts_with("ossa/")) {
        return skip("an OSSA " + std::string{version.substr(5)} + " " + std::string{kind} +
                    ": this program judges OSSA 1.0 (ossaVersion: \"1.0\")");
    }
    if (version.starts_with("agentrax.io/")) {
        return skip(std::string{version} + " " + std::string{kind} +
                    ": ossa-validator convert makes an ossa.ai/v1 object of it");
    }
    if (version.empty() && (kind == "Agent" || kind == "TenantQuota")) {
        return wrong("input/api-version", pointer, "apiVersion", "", "is missing", "apiVersion: ossa.ai/v1");
    }
    if (kind.ends_with("List") && object.at("items").is_array()) {
        return {.sort = Sort::list, .what = {}, .finding = {}};
    }
    if (!kind.empty() || !version.empty()) {
        return skip("kind " + (kind.empty() ? "unknown" : std::string{kind.substr(0, 80)}) +
                    (version.empty() ? "" : " of " + std::string{version.substr(0, 80)}));
    }
    return skip(other_format(object));
}

// Lines of a file, found once there is something to show.
class Lines {
  public:
    explicit Lines(std::string_view text) : text_(text) {}
    std::string at(std::uint32_t line) {
        if (starts_.empty()) {
            starts_.push_back(0);
            for (std::size_t i = text_.find('\n'); i != std::string_view::npos; i = text_.find('\n', i + 1)) {
                starts_.push_back(i + 1);
            }
        }
        if (line == 0 || line > starts_.size()) {
            return {};
        }
        const std::size_t start = starts_[line - 1];
        std::string_view shown = text_.substr(start, std::min(text_.find('\n', start), text_.size()) - start);
        if (line == 1 && shown.starts_with("\xEF\xBB\xBF")) {
            shown.remove_prefix(3);
        }
        if (shown.ends_with('\r')) {
            shown.remove_suffix(1);
        }
        return std::string{shown.substr(0, 2000)};
    }

  private:
    std::string_view text_;
    std::vector<std::size_t> starts_;
};

// Where there is nothing at the pointer (a member is missing), what lies around it.
yaml::Spot nearest_spot(yaml::Document& document, std::string pointer, std::uint32_t first_line) {
    while (true) {
        if (const auto spot = document.find(pointer)) {
            return *spot;
        }
        const std::size_t slash = pointer.rfind('/');
        if (slash == std::string::npos) {
            yaml::Spot spot;
            spot.value = {first_line, 1, 0};
            return spot;
        }
        pointer.resize(slash);
    }
}

yaml::Place place_of(const kube::Finding& finding, const yaml::Spot& spot) {
    const bool about_the_name = !finding.member.empty() || finding.rule == "agent/unknown-field" || spot.empty() ||
                                spot.style == yaml::Style::none || !spot.value.known();
    return about_the_name && spot.key.known() ? spot.key : spot.value;
}

// All but file, document and place, which is handed out beside.
Located locate(const kube::Finding& finding, const std::string& pointer, yaml::Document& document,
               std::uint32_t first_line, yaml::Place& place) {
    const yaml::Spot spot = nearest_spot(document, pointer, first_line);
    Located located;
    located.severity = finding.severity;
    located.rule = finding.rule;
    located.pointer = pointer;
    kube::Finding shown = finding;
    shown.pointer = pointer;
    shown.hint.clear();
    constexpr std::string_view pattern = "must match the pattern ";
    if (shown.message.size() > 100 && shown.message.starts_with(pattern)) {
        // Nobody reads the 179 characters of a semantic version's expression; the hint says what is meant.
        shown.message = "must match the pattern of the schema";
    }
    if (shown.found == "null" && spot.style == yaml::Style::plain &&
        yaml::resolve(spot.text).kind == yaml::Scalar::Kind::not_finite) {
        shown.found = spot.text;  // read as null, since JSON has no such number
        shown.message = shown.message.substr(0, shown.message.find(", not null"));
    }
    located.message = kube::to_line(shown);
    located.hint = hint_for(finding, spot);
    place = place_of(finding, spot);
    return located;
}

class FileJudge {
  public:
    FileJudge(const std::string& name, std::string_view text, const JudgeOptions& options, Scratch& scratch,
              FileResult& out)
        : name_(name), text_(text), options_(options), scratch_(scratch), out_(out), lines_(text) {}

    void run() {
        out_.summary.files = 1;
        yaml::Splitter splitter(text_);
        for (; const auto part = splitter.next(); ++part_) {
            if (part->problem) {
                problem(*part->problem);
            }
            if (const auto unreadable = scratch_.document.read(*part, options_.limits)) {
                ++number_;
                problem(*unreadable);
                continue;
            }
            const Value root = scratch_.document.root();
            if (!root.exists()) {
                continue;
            }
            ++number_;
            ++out_.summary.documents;
            first_line_ = part->first_line;
            document(root);
        }
    }

  private:
    void problem(const yaml::Problem& problem) {
        ++out_.summary.unreadable;
        Located located;
        located.rule = problem.rule;
        located.message = problem.message;
        located.hint = problem.hint;
        located.document = number_;
        put(std::move(located), problem.place);
    }

    void put(Located located, yaml::Place place) {
        located.file = name_;
        located.line = place.line;
        located.column = place.column;
        located.length = place.length;
        located.excerpt = lines_.at(place.line);
        (located.severity == Severity::error ? out_.summary.errors : out_.summary.warnings) += 1;
        out_.findings.push_back(std::move(located));
    }

    void document(Value root) {
        const std::size_t before = out_.findings.size();
        judged_any_ = false;
        object(root, "");
        if (!judged_any_) {
            return;
        }
        remarks(before);
        std::stable_sort(out_.findings.begin() + static_cast<std::ptrdiff_t>(before), out_.findings.end(),
                         [](const Located& a, const Located& b) {
                             return a.line != b.line ? a.line < b.line : a.column < b.column;
                         });
    }

    // One object: the root, or an item of a list.
    void object(Value object, const std::string& pointer) {
        const Known known = classify(object, pointer, options_.take_as);
        switch (known.sort) {
            case Sort::skip: skipped(known.what, pointer); return;
            case Sort::wrong:
                judged_any_ = true;
                ++out_.summary.judged;
                ++out_.summary.invalid;
                finding(known.finding, "");
                return;
            case Sort::list: {
                std::size_t index = 0;
                const Value items = object.at("items");
                // The list was counted as one document; what it holds counts instead.
                --out_.summary.documents;
                for (const Value item : items.elements()) {
                    ++out_.summary.documents;
                    this->object(item, pointer + "/items/" + std::to_string(index++));
                    if (pointer.size() > 60) {
                        return;  // lists within lists within lists: nobody means that
                    }
                }
                return;
            }
            case Sort::agent:
            case Sort::tenant_quota:
            case Sort::ossa: judge(object, pointer, known.sort); return;
        }
    }

    void skipped(const std::string& what, const std::string& pointer) {
        ++out_.summary.skipped;
        Skipped entry;
        entry.file = name_;
        entry.document = number_;
        const auto spot = scratch_.document.find(pointer);
        entry.line = spot && spot->value.known() ? spot->value.line : first_line_;
        entry.what = what;
        out_.skipped.push_back(std::move(entry));
    }

    void judge(Value object, const std::string& pointer, Sort sort) {
        engine::Judgement& judgement = scratch_.judgement;
        judgement.clear();
        judged_any_ = true;
        ++out_.summary.judged;
        switch (sort) {
            case Sort::agent:
                engine::judge_agent(object, {}, options_.policy, judgement);
                check_examples(object.at("spec").at("agent"), "/spec/agent", judgement.warnings);
                break;
            case Sort::tenant_quota: engine::judge_tenant_quota(object, {}, judgement); break;
            default:
                engine::judge_ossa_document(object, options_.policy, judgement);
                check_examples(object.at("agent"), "/agent", judgement.warnings);
                break;
        }
        for (const kube::Finding& one : judgement.errors) {
            finding(one, pointer);
        }
        for (const kube::Finding& one : judgement.warnings) {
            finding(one, pointer);
        }
        out_.summary.invalid += judgement.errors.empty() ? 0 : 1;
        facts(object, pointer, sort);
        if (options_.show_defaults != ShowDefaults::no && sort != Sort::tenant_quota) {
            defaults(object, pointer, sort);
        }
    }

    void finding(const kube::Finding& finding, const std::string& pointer) {
        if (finding.severity == Severity::warning && !options_.warnings_shown) {
            Located located;
            located.severity = Severity::warning;
            located.rule = finding.rule;
            located.pointer = pointer + finding.pointer;
            located.file = name_;
            located.document = number_;
            out_.summary.warnings += 1;
            out_.findings.push_back(std::move(located));
            return;
        }
        yaml::Place place;
        Located located = locate(finding, pointer + finding.pointer, scratch_.document, first_line_, place);
        located.document = number_;
        put(std::move(located), place);
    }

    // What the reader noticed, unless a finding at the same place says it already.
    void remarks(std::size_t before) {
        const std::size_t behind = out_.findings.size();
        for (const yaml::Remark& remark : scratch_.document.remarks()) {
            const bool said = remark.kind != yaml::RemarkKind::duplicate_key &&
                              remark.kind != yaml::RemarkKind::boolean_key &&
                              std::any_of(out_.findings.begin() + static_cast<std::ptrdiff_t>(before),
                                          out_.findings.begin() + static_cast<std::ptrdiff_t>(behind),
                                          [&](const Located& one) { return one.pointer == remark.pointer; });
            if (said && remark.kind != yaml::RemarkKind::ignored_rest) {
                continue;
            }
            const kube::Finding finding = finding_of(remark);
            Located located;
            located.severity = finding.severity;
            located.rule = finding.rule;
            located.pointer = remark.pointer;
            located.document = number_;
            located.message = finding.message;
            located.hint = finding.hint;
            put(std::move(located), remark.place);
        }
    }

    void facts(Value object, const std::string& pointer, Sort sort) {
        const std::size_t source = out_.documents.size();
        out_.documents.push_back({name_, number_, part_, first_line_});
        if (sort == Sort::tenant_quota) {
            out_.quotas.push_back(engine::quota_facts(object, pointer, options_.namespace_));
            out_.quotas.back().source = source;
            return;
        }
        out_.agents.push_back(sort == Sort::ossa ? engine::bare_agent_facts(object)
                                                 : engine::agent_facts(object, pointer, options_.namespace_));
        out_.agents.back().source = source;
    }

    void defaults(Value object, const std::string& pointer, Sort sort) {
        schema::RunResult run;
        const bool bare = sort == Sort::ossa;
        const schema::Plan& plan = bare ? schema::ossa_plan() : schema::agent_spec_plan();
        const Value judged = bare ? object : object.at("spec");
        plan.run(judged, {.base_pointer = bare ? "" : "/spec", .collect_fills = true}, run);
        if (options_.show_defaults == ShowDefaults::document) {
            out_.defaults += "---\n# " + name_ + " document " + std::to_string(number_) + "\n";
            append_yaml(out_.defaults, object, 0, "", run.fills);
            return;
        }
        out_.defaults += name_ + " document " + std::to_string(number_) + ": " +
                         (run.fills.empty() ? std::string{"nothing is filled in"}
                                            : std::to_string(run.fills.size()) + " defaults are filled in") +
                         "\n";
        for (const schema::Fill& fill : run.fills) {
            out_.defaults += "  + " + kube::field_path(pointer + fill.pointer) + ": " + std::string{fill.value} + "\n";
        }
    }

    const std::string& name_;
    std::string_view text_;
    const JudgeOptions& options_;
    Scratch& scratch_;
    FileResult& out_;
    Lines lines_;
    std::size_t number_ = 0;
    std::size_t part_ = 0;
    std::uint32_t first_line_ = 1;
    bool judged_any_ = false;
};

}  // namespace

std::vector<Located> place_findings(const std::string& name, std::string_view text, const yaml::Limits& limits,
                                    const std::vector<Unplaced>& findings) {
    std::vector<Located> out(findings.size());
    Lines lines(text);
    yaml::Document document;
    yaml::Splitter splitter(text);
    std::map<std::size_t, std::vector<std::size_t>> wanted;  // by part
    for (std::size_t i = 0; i < findings.size(); ++i) {
        wanted[findings[i].part].push_back(i);
    }
    auto next = wanted.begin();
    for (std::size_t at = 0; next != wanted.end(); ++at) {
        const auto part = splitter.next();
        if (!part) {
            break;
        }
        if (next->first != at) {
            continue;
        }
        const std::vector<std::size_t>& here = (next++)->second;
        if (document.read(*part, limits)) {
            continue;
        }
        for (const std::size_t i : here) {
            yaml::Place place;
            out[i] = locate(findings[i].finding, findings[i].pointer, document, part->first_line, place);
            out[i].line = place.line;
            out[i].column = place.column;
            out[i].length = place.length;
            out[i].excerpt = lines.at(place.line);
        }
    }
    for (std::size_t i = 0; i < findings.size(); ++i) {
        if (out[i].rule.empty()) {  // the file has changed meanwhile
            out[i].severity = findings[i].finding.severity;
            out[i].rule = findings[i].finding.rule;
            out[i].pointer = findings[i].pointer;
            out[i].message = kube::to_line(findings[i].finding);
        }
        out[i].file = name;
        out[i].document = findings[i].document;
    }
    return out;
}

void judge_file(const std::string& name, std::string_view text, const JudgeOptions& options, Scratch& scratch,
                FileResult& out) {
    FileJudge(name, text, options, scratch, out).run();
}

}  // namespace ossa::validator
