#include <set>

#include "conformance/oracle.hpp"
#include "engine/admission.hpp"
#include "fuzz/targets.hpp"
#include "schema/plan.hpp"
#include "schema/schemas.hpp"

namespace ossa::fuzz {
namespace {

std::string words(const kube::Findings& findings) {
    std::string out;
    for (const kube::Finding& finding : findings) {
        out += finding.rule + " " + finding.pointer + " " + finding.member + "\n";
    }
    return out;
}

}  // namespace

void agent_parse(std::string_view bytes) {
    static json::Document first;
    static json::Document second;
    if (!first.parse(bytes, {})) {
        return;
    }
    const std::string printed = json::to_text(first.root());
    const json::Limits limits{.bytes_max = SIZE_MAX, .depth_max = 256, .values_max = 1U << 22};
    demand(second.parse(printed, limits).has_value(), "what is printed can be read", printed);
    demand(json::equal(first.root(), second.root()) && json::equal(second.root(), first.root()),
           "what is printed is what was read", printed);
    // Not the same text at once: -0.0 is printed as -0, which is a whole number.
    const std::string settled = json::to_text(second.root());
    demand(second.parse(settled, limits).has_value() && json::to_text(second.root()) == settled, "printing settles",
           settled);

    static engine::Judgement one;
    static engine::Judgement two;
    one.clear();
    two.clear();
    engine::judge_agent(first.root(), first.root(), {.require_image = true}, one);
    engine::judge_agent(second.root(), second.root(), {.require_image = true}, two);
    demand(words(one.errors) == words(two.errors), "what is printed has the same errors",
           words(one.errors) + "and\n" + words(two.errors));
    demand(words(one.warnings) == words(two.warnings), "what is printed has the same warnings",
           words(one.warnings) + "and\n" + words(two.warnings));
    one.clear();
    engine::judge_ossa_document(first.root(), {}, one);
    one.clear();
    engine::judge_tenant_quota(first.root(), first.root(), one);
}

void schema_validate(std::string_view bytes) {
    static json::Document document;
    static schema::RunResult run;
    static const oracle::Oracle oracle{schema::ossa_schema_text()};
    if (!document.parse(bytes, {})) {
        return;
    }
    run.clear();
    schema::ossa_plan().run(
        document.root(), {.base_pointer = "", .collect_fills = true, .collect_unknown = true, .errors_max = SIZE_MAX},
        run);
    demand(!run.out_of_steps, "our own schema needs no budget", bytes);
    oracle::Opinion ours{run.errors.empty(), {}};
    for (const kube::Finding& finding : run.errors) {
        ours.leaves.insert(finding.pointer);
        demand(document.root().pointer(finding.pointer).exists(), "an error has a place in the document",
               finding.pointer);
    }
    for (const schema::UnknownMember& member : run.unknown) {
        demand(document.root().pointer(member.pointer).exists(), "an unknown member is in the document",
               member.pointer);
    }
    for (const schema::Fill& fill : run.fills) {
        demand(!document.root().pointer(fill.pointer).exists(), "a default fills a gap", fill.pointer);
    }
    demand(ours == oracle.judge(document.root()), "plan and oracle agree", words(run.errors));

    // As a user's schema: within the budget it is judged, and compiling it ends.
    run.clear();
    schema::metaschema_plan().run(document.root(), {.base_pointer = "", .errors_max = 1, .steps_max = 10'000}, run);
    const bool is_schema = run.errors.empty() && !run.out_of_steps;
    const auto plan = schema::Plan::compile(
        document.root(), {.unknown = schema::UnknownKeyword::ignore, .nodes_max = 1'000, .run_patterns = false});
    if (plan && is_schema) {
        run.clear();
        plan->run(document.root(), {.base_pointer = "", .steps_max = 10'000}, run);
    }
}

void json_document(std::string_view bytes) {
    // Behind this much white space a text is read by RapidJSON instead of simdjson. A byte order mark stays in front.
    static const std::string ballast(std::size_t{257} << 10, ' ');
    static json::Document small;
    static json::Document large;
    const std::size_t mark = bytes.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    const std::string behind = std::string(bytes.substr(0, mark)) + ballast + std::string(bytes.substr(mark));
    const auto one = small.parse(bytes, {});
    const auto two = large.parse(behind, {});
    demand(
        one.has_value() == two.has_value(), "both readers give one verdict",
        one ? "RapidJSON: " + std::string(two.error().message()) : "simdjson: " + std::string(one.error().message()));
    if (one) {
        demand(json::equal(small.root(), large.root()), "both readers see one document",
               json::to_text(small.root()) + " and " + json::to_text(large.root()));
        demand(json::to_text(small.root()) == json::to_text(large.root()), "both readers' documents print alike",
               json::to_text(small.root()) + " and " + json::to_text(large.root()));
    }
    (void)json::find_string(bytes, {"request", "uid"});
}

}  // namespace ossa::fuzz
