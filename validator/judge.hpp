// Judges the documents of one file as the webhook would, and says where in the file each finding stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"
#include "engine/admission.hpp"
#include "engine/cross.hpp"
#include "validator/report.hpp"

namespace ossa::validator {

// What a document is taken for. Automatic: told from apiVersion and kind, or ossaVersion at its root.
enum class TakeAs : std::uint8_t { automatic, ossa, agent, tenant_quota };

enum class ShowDefaults : std::uint8_t { no, diff, document };

struct JudgeOptions {
    engine::Policy policy;
    TakeAs take_as = TakeAs::automatic;
    ShowDefaults show_defaults = ShowDefaults::no;
    std::string namespace_ = "default";  // of objects that name none, as kubectl would put them
    yaml::Limits limits;
    bool warnings_shown = true;  // false: they are only counted; their places and texts are not looked for
};

// A judged document, for the cross checks.
struct DocumentFacts {
    std::string file;
    std::size_t document = 0;
    std::size_t part = 0;    // of the stream, from 0: finds it again
    std::uint32_t line = 0;  // where its part begins
};

struct FileResult {
    std::vector<Located> findings;
    std::vector<Skipped> skipped;
    Summary summary;
    std::string defaults;                  // text of --show-defaults
    std::optional<std::string> text;       // of what cannot be read twice: standard input, a pipe
    std::vector<DocumentFacts> documents;  // `source` of the facts counts in here
    std::vector<engine::AgentFacts> agents;
    std::vector<engine::QuotaFacts> quotas;
};

// Memory that one thread keeps from file to file.
struct Scratch {
    yaml::Document document;
    engine::Judgement judgement;
};

void judge_file(const std::string& name, std::string_view text, const JudgeOptions& options, Scratch& scratch,
                FileResult& out);

// A finding that was made without the text at hand: document, part and pointer say where it belongs.
struct Unplaced {
    std::size_t document = 0;
    std::size_t part = 0;
    std::string pointer;  // from the root of the document
    kube::Finding finding;
};
// Reads the text again and finds their places.
std::vector<Located> place_findings(const std::string& name, std::string_view text, const yaml::Limits& limits,
                                    const std::vector<Unplaced>& findings);

}  // namespace ossa::validator
