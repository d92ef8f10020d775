// One run over everything given: reads, judges on all cores, compares the documents with each other, adds up.
#pragma once

#include <string>
#include <vector>

#include "validator/judge.hpp"
#include "validator/report.hpp"

namespace ossa::validator {

struct RunOptions {
    JudgeOptions judge;
    bool cross_checks = true;
    unsigned threads = 0;  // 0: as many as there are cores
};

struct RunResult {
    Report report;
    std::string defaults;  // of --show-defaults
};

RunResult run(const std::vector<std::string>& files, const RunOptions& options);

}  // namespace ossa::validator
