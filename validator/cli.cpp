#include "validator/cli.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "schema/crd.hpp"
#include "schema/schemas.hpp"
#include "validator/convert.hpp"
#include "validator/hints.hpp"
#include "validator/input.hpp"
#include "validator/rule_list.hpp"
#include "validator/run.hpp"

#ifndef OSSA_VERSION
#define OSSA_VERSION "dev"
#endif

namespace ossa::validator {
namespace {

enum class Format : std::uint8_t { human, json, sarif, junit, github };
enum class Colour : std::uint8_t { automatic, always, never };

struct Settings {
    std::vector<std::string> inputs;
    Format format = Format::human;
    Colour colour = Colour::automatic;
    std::string output;
    bool quiet = false;
    bool strict = false;
    bool allow_empty = false;
    bool no_cross_checks = false;
    RunOptions run;
};

constexpr const char* footer = R"(Exit codes:
  0  every document is good
  1  findings: an error; with --strict also a warning or a skipped document
  2  the command line is wrong
  3  a file or document could not be read or parsed (stronger than 1)
  4  nothing to check, unless --allow-empty

Every option can also be set by an environment variable: --allow-empty is OSSA_ALLOW_EMPTY.)";

int write_out(const std::string& text, const std::string& file) {
    if (file.empty() || file == "-") {
        const bool good = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
        if (!good) {
            std::fprintf(stderr, "ossa-validator: cannot write to standard output\n");
        }
        return good ? 0 : exit_unreadable;
    }
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out) {
        std::fprintf(stderr, "ossa-validator: cannot write %s\n", file.c_str());
        return exit_unreadable;
    }
    return 0;
}

bool wants_colour(const Settings& settings) {
    switch (settings.colour) {
        case Colour::always: return true;
        case Colour::never: return false;
        case Colour::automatic: break;
    }
    const char* term = std::getenv("TERM");
    return settings.output.empty() && isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr &&
           (term == nullptr || std::string_view{term} != "dumb");
}

int exit_code(const Report& report, const Settings& settings) {
    const Summary& summary = report.summary;
    if (summary.unreadable != 0) {
        return exit_unreadable;
    }
    if (summary.errors != 0 || (settings.strict && (summary.warnings != 0 || summary.skipped != 0))) {
        return exit_findings;
    }
    if (summary.judged == 0 && !settings.allow_empty) {
        return exit_nothing;
    }
    return exit_clean;
}

int validate(const Settings& settings) {
    if (settings.inputs.empty()) {
        std::fprintf(
            stderr, "ossa-validator: name files, folders or patterns to check, or - for standard input (see --help)\n");
        return exit_usage;
    }
    const Inputs inputs = find_inputs(settings.inputs);
    for (const std::string& name : inputs.without_hits) {
        std::fprintf(stderr, "ossa-validator: %s: no *.yaml, *.yml or *.json there\n", name.c_str());
    }
    const RunResult result = run(inputs.files, settings.run);
    const Report& report = result.report;
    std::string text;
    switch (settings.format) {
        case Format::human: text = to_human(report, {.colour = wants_colour(settings), .quiet = settings.quiet}); break;
        case Format::json: text = to_json(report); break;
        case Format::sarif: text = to_sarif(report, OSSA_VERSION); break;
        case Format::junit: text = to_junit(report); break;
        case Format::github: text = to_github(report); break;
    }
    if (settings.run.judge.show_defaults != ShowDefaults::no) {
        if (const int code = write_out(result.defaults, ""); code != 0) {
            return code;
        }
        if (settings.format == Format::human && settings.run.judge.show_defaults == ShowDefaults::document &&
            settings.output.empty()) {
            std::fputs(text.c_str(), stderr);  // standard output holds the documents
            text.clear();
        }
    }
    if (const int code = write_out(text, settings.output); code != 0) {
        return code;
    }
    const int code = exit_code(report, settings);
    if (!settings.quiet) {
        if (settings.format != Format::human || !settings.output.empty()) {
            std::fprintf(stderr, "%s\n", summary_line(report.summary).c_str());
        }
        if (code == exit_nothing) {
            std::fprintf(stderr, "ossa-validator: nothing to check%s\n",
                         report.summary.skipped != 0 ? ": every document was skipped" : "");
        }
    }
    return code;
}

int list_rules() {
    std::string out;
    for (const schema::RuleEntry& rule : all_rules()) {
        out += std::string{rule.id} + std::string(rule.id.size() < 32 ? 32 - rule.id.size() : 1, ' ') +
               (rule.severity == kube::Severity::error ? "error    " : "warning  ") + std::string{rule.text} + "\n";
    }
    return write_out(out, "");
}

int explain(const std::string& id) {
    const schema::RuleEntry* rule = rule_of(id);
    if (rule == nullptr) {
        std::fprintf(stderr, "ossa-validator: no rule %s (ossa-validator rules lists them)\n", id.c_str());
        return exit_usage;
    }
    std::string out = std::string{rule->id} + " (" + (rule->severity == kube::Severity::error ? "error" : "warning") +
                      ")\n\n" + std::string{rule->text} + "\n";
    if (!rule->example.empty()) {
        out += "\nWhat mends it:\n";
        std::string_view rest = rule->example;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            out += "    " + std::string{rest.substr(0, end)} + "\n";
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    return write_out(out, "");
}

int print_crds() {
    std::string out;
    for (const schema::CrdFile& file : schema::crds()) {
        out += (file.text.starts_with("---") ? "" : "---\n") + file.text;
    }
    return write_out(out, "");
}

// Says what a conversion would silently drop: one of two equal keys, a number that JSON does not have, what stands
// behind the end of a document.
bool loses_something(const yaml::Document& document, const std::string& file) {
    bool loses = false;
    for (const yaml::Remark& remark : document.remarks()) {
        const kube::Finding finding = finding_of(remark);
        if (finding.severity == kube::Severity::error) {
            std::fprintf(stderr, "%s:%u:%u: not converted: %s (%s)\n", file.c_str(), remark.place.line,
                         remark.place.column, finding.message.c_str(), finding.hint.c_str());
            loses = true;
        }
    }
    return loses;
}

int convert_files(const std::vector<std::string>& arguments, const ConvertOptions& options, const std::string& output) {
    const Inputs inputs = find_inputs(arguments);
    std::string out;
    std::size_t converted = 0;
    bool unreadable = false;
    yaml::Document document;
    for (const std::string& file : inputs.files) {
        const auto text = read_input(file);
        if (!text) {
            std::fprintf(stderr, "%s: cannot be read: %s\n", file.c_str(), text.error().message().c_str());
            unreadable = true;
            continue;
        }
        yaml::Splitter splitter(*text);
        std::size_t number = 0;
        while (const auto part = splitter.next()) {
            const auto problem = part->problem ? part->problem : document.read(*part, {});
            if (problem) {
                std::fprintf(stderr, "%s:%u:%u: %s\n", file.c_str(), problem->place.line, problem->place.column,
                             problem->message.c_str());
                unreadable = true;
                continue;
            }
            if (!document.root().exists()) {
                continue;
            }
            ++number;
            if (loses_something(document, file)) {
                unreadable = true;
                continue;
            }
            const Converted one = convert(document.root(), options);
            if (!one.known) {
                std::fprintf(stderr,
                             "%s: document %zu: left out, it is no AgentDeployment, TenantQuota or OSSA document\n",
                             file.c_str(), number);
                continue;
            }
            ++converted;
            out += "---\n" + one.yaml;
            for (const std::string& note : one.notes) {
                std::fprintf(stderr, "%s: document %zu: %s\n", file.c_str(), number, note.c_str());
            }
        }
    }
    if (const int code = write_out(out, output); code != 0) {
        return code;
    }
    return unreadable ? exit_unreadable : converted == 0 ? exit_nothing : exit_clean;
}

}  // namespace

int cli(int argc, char** argv) {
    CLI::App app{
        "Checks Agent and TenantQuota manifests and OSSA 1.0 documents as the webhook does, without a cluster.",
        "ossa-validator"};
    app.footer(footer);
    app.set_version_flag("--version", std::string{"ossa-validator "} + OSSA_VERSION);
    app.get_formatter()->column_width(34);
    Settings settings;
    app.add_option("inputs", settings.inputs,
                   "files, folders (*.yaml *.yml *.json below them), patterns, or - for standard input");
    app.add_option("--format", settings.format, "human, json, sarif, junit or github")
        ->transform(CLI::CheckedTransformer(std::map<std::string, Format>{{"human", Format::human},
                                                                          {"json", Format::json},
                                                                          {"sarif", Format::sarif},
                                                                          {"junit", Format::junit},
                                                                          {"github", Format::github}})
                        .description(""))
        ->type_name("FORMAT")
        ->envname("OSSA_FORMAT");
    app.add_option("--output", settings.output, "write the report to this file")
        ->type_name("FILE")
        ->envname("OSSA_OUTPUT");
    app.add_flag("--quiet", settings.quiet, "errors only, one line each, no summary")->envname("OSSA_QUIET");
    app.add_flag("--strict", settings.strict, "warnings and skipped documents fail as well")->envname("OSSA_STRICT");
    app.add_flag("--allow-empty", settings.allow_empty, "nothing to check is no failure")->envname("OSSA_ALLOW_EMPTY");
    app.add_flag("--require-image", settings.run.judge.policy.require_image,
                 "as the webhook's option: an Agent that runs here must name an image")
        ->envname("OSSA_REQUIRE_IMAGE");
    app.add_flag("--no-cross-checks", settings.no_cross_checks, "judge each document for itself")
        ->envname("OSSA_NO_CROSS_CHECKS");
    app.add_option("--namespace", settings.run.judge.namespace_, "of objects that name none (default)")
        ->type_name("NAME")
        ->envname("OSSA_NAMESPACE");
    app.add_option("--as", settings.run.judge.take_as, "take every document for this: auto, ossa, agent or tenantquota")
        ->transform(CLI::CheckedTransformer(std::map<std::string, TakeAs>{{"auto", TakeAs::automatic},
                                                                          {"ossa", TakeAs::ossa},
                                                                          {"agent", TakeAs::agent},
                                                                          {"tenantquota", TakeAs::tenant_quota}})
                        .description(""))
        ->type_name("KIND")
        ->envname("OSSA_AS");
    std::string show_defaults;
    app.add_flag("--show-defaults{diff}", show_defaults,
                 "also print what the webhook fills in; --show-defaults=document prints the whole documents")
        ->check(CLI::IsMember({"diff", "document"}).description(""))
        ->envname("OSSA_SHOW_DEFAULTS");
    app.add_option("--color", settings.colour, "auto, always or never")
        ->transform(CLI::CheckedTransformer(std::map<std::string, Colour>{{"auto", Colour::automatic},
                                                                          {"always", Colour::always},
                                                                          {"never", Colour::never}})
                        .description(""))
        ->type_name("WHEN")
        ->envname("OSSA_COLOR");
    app.add_option("--jobs", settings.run.threads, "threads (as many as there are cores)")
        ->type_name("N")
        ->envname("OSSA_JOBS");

    auto* rules = app.add_subcommand("rules", "list every rule with an explanation");
    auto* explain_command = app.add_subcommand("explain", "explain one rule");
    std::string rule;
    explain_command->add_option("rule", rule, "its id, such as schema/type")->required();
    auto* schema_command = app.add_subcommand("schema", "print the OSSA 1.0 JSON schema, for editors");
    auto* crds_command = app.add_subcommand("crds", "print the CustomResourceDefinitions");
    auto* convert_command = app.add_subcommand("convert",
                                               "make Agents of agentrax.io/v1alpha1 objects and of bare OSSA "
                                               "documents; says on standard error what it assumed");
    std::vector<std::string> convert_inputs;
    ConvertOptions convert_options;
    std::string convert_output;
    convert_command->add_option("inputs", convert_inputs, "files, folders, patterns, or -")->required();
    convert_command->add_option("--namespace", convert_options.namespace_, "put them there")->type_name("NAME");
    convert_command->add_option("--tenant", convert_options.tenant, "their tenantRef")->type_name("NAME");
    convert_command->add_option("--output", convert_output, "write to this file")->type_name("FILE");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? exit_clean : exit_usage;
    }
    if (rules->parsed()) {
        return list_rules();
    }
    if (explain_command->parsed()) {
        return explain(rule);
    }
    if (schema_command->parsed()) {
        return write_out(std::string{schema::ossa_schema_text()}, "");
    }
    if (crds_command->parsed()) {
        return print_crds();
    }
    if (convert_command->parsed()) {
        return convert_files(convert_inputs, convert_options, convert_output);
    }
    settings.run.cross_checks = !settings.no_cross_checks;
    settings.run.judge.warnings_shown = !settings.quiet || settings.format != Format::human;
    settings.run.judge.show_defaults = show_defaults.empty()         ? ShowDefaults::no
                                       : show_defaults == "document" ? ShowDefaults::document
                                                                     : ShowDefaults::diff;
    return validate(settings);
}

}  // namespace ossa::validator
