#include "validator/run.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <thread>

#include "schema/schemas.hpp"
#include "validator/input.hpp"

namespace ossa::validator {
namespace {

void judge_one(const std::string& file, const JudgeOptions& options, Scratch& scratch, FileResult& out) {
    bool again = true;
    auto text = read_input(file, &again);
    if (!text) {
        out.summary.files = 1;
        out.summary.unreadable = 1;
        out.summary.errors = 1;
        Located located;
        located.file = file;
        located.rule = "input/read";
        located.message = "cannot be read: " + text.error().message();
        out.findings.push_back(std::move(located));
        return;
    }
    judge_file(file, *text, options, scratch, out);
    if (!again) {
        out.text = std::move(*text);
    }
}

// Calls work(i) for every i below `count`, on as many threads; make_work makes what one thread calls.
template <class MakeWork>
void in_parallel(std::size_t count, unsigned threads_wanted, MakeWork make_work) {
    const unsigned cores = threads_wanted != 0 ? threads_wanted : std::max(1U, std::thread::hardware_concurrency());
    const auto workers = static_cast<unsigned>(std::min<std::size_t>(cores, count / 4));
    std::atomic<std::size_t> next{0};
    const auto run_all = [&] {
        auto work = make_work();
        for (std::size_t i = next++; i < count; i = next++) {
            work(i);
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < workers; ++i) {
        threads.emplace_back(run_all);
    }
    run_all();
}

// The cross findings, placed; by file. Those that are only counted go into `summary`. Takes the facts out of the
// results.
std::map<std::string, std::vector<Located>> compare(std::vector<FileResult>& results, const RunOptions& options,
                                                    const std::vector<std::string>& files, Summary& summary) {
    std::vector<engine::AgentFacts> agents;
    std::vector<engine::QuotaFacts> quotas;
    std::vector<std::string> where;
    std::vector<const DocumentFacts*> documents;
    for (FileResult& result : results) {
        const std::size_t base = documents.size();
        for (const DocumentFacts& document : result.documents) {
            documents.push_back(&document);
            where.push_back(document.file + ":" + std::to_string(document.line));
        }
        for (engine::AgentFacts& agent : result.agents) {
            agent.source += base;
            agents.push_back(std::move(agent));
        }
        for (engine::QuotaFacts& quota : result.quotas) {
            quota.source += base;
            quotas.push_back(std::move(quota));
        }
    }
    std::map<std::string, std::vector<Unplaced>> unplaced;
    for (engine::CrossFinding& found : engine::cross_check(agents, quotas, where)) {
        if (found.finding.severity == kube::Severity::warning && !options.judge.warnings_shown) {
            ++summary.warnings;
            continue;
        }
        const DocumentFacts& document = *documents[found.source];
        std::string pointer = found.finding.pointer;
        unplaced[document.file].push_back(
            {document.document, document.part, std::move(pointer), std::move(found.finding)});
    }
    struct Job {
        std::size_t index;
        const std::vector<Unplaced>* findings;
        std::vector<Located>* out;
    };
    std::map<std::string, std::vector<Located>> placed;
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (const auto of_file = unplaced.find(files[i]); of_file != unplaced.end()) {
            jobs.push_back({i, &of_file->second, &placed[files[i]]});
        }
    }
    in_parallel(jobs.size(), options.threads, [&] {
        return [&](std::size_t at) {
            const Job& job = jobs[at];
            const std::string& file = files[job.index];
            const auto& kept = results[job.index].text;
            const auto text = kept ? Result<std::string>{*kept} : read_input(file);
            *job.out = place_findings(file, text ? std::string_view{*text} : std::string_view{}, options.judge.limits,
                                      *job.findings);
        };
    });
    return placed;
}

void add(Summary& to, const Summary& from) {
    to.files += from.files;
    to.documents += from.documents;
    to.judged += from.judged;
    to.invalid += from.invalid;
    to.skipped += from.skipped;
    to.unreadable += from.unreadable;
    to.errors += from.errors;
    to.warnings += from.warnings;
}

}  // namespace

RunResult run(const std::vector<std::string>& files, const RunOptions& options) {
    std::vector<FileResult> results(files.size());
    in_parallel(files.size(), options.threads, [&] {
        return [&, scratch = Scratch{}](std::size_t i) mutable {
            judge_one(files[i], options.judge, scratch, results[i]);
        };
    });
    RunResult out;
    out.report.files = files;
    std::map<std::string, std::vector<Located>> placed;
    if (options.cross_checks) {
        placed = compare(results, options, files, out.report.summary);
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
        FileResult& result = results[i];
        add(out.report.summary, result.summary);
        const auto cross = placed.find(files[i]);
        if (cross != placed.end()) {
            for (Located& located : cross->second) {
                (located.severity == kube::Severity::error ? out.report.summary.errors : out.report.summary.warnings) +=
                    1;
                result.findings.push_back(std::move(located));
            }
            std::stable_sort(result.findings.begin(), result.findings.end(), [](const Located& a, const Located& b) {
                return a.document != b.document ? a.document < b.document
                       : a.line != b.line       ? a.line < b.line
                                                : a.column < b.column;
            });
        }
        std::move(result.findings.begin(), result.findings.end(), std::back_inserter(out.report.findings));
        std::move(result.skipped.begin(), result.skipped.end(), std::back_inserter(out.report.skipped));
        out.defaults += result.defaults;
    }
    return out;
}

}  // namespace ossa::validator
