// What a run found, and the ways to write it down. Values only; writing never fails and prints nothing by itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/types/finding.hpp"

namespace ossa::validator {

// A finding and where it stands. Line and column count from 1 (0: the file as a whole), columns in characters;
// length 0 marks to the end of the line.
struct Located {
    std::string file;
    std::size_t document = 0;  // 1 is the first that holds something; 0: none
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t length = 0;
    kube::Severity severity = kube::Severity::error;
    std::string rule;
    std::string pointer;  // from the root of the document
    std::string message;  // complete, on one line
    std::string hint;
    std::string excerpt;  // the line of the file
};

// A document of a kind that is not judged here.
struct Skipped {
    std::string file;
    std::size_t document = 0;
    std::uint32_t line = 0;
    std::string what;
};

struct Summary {
    std::size_t files = 0;
    std::size_t documents = 0;  // that hold something
    std::size_t judged = 0;
    std::size_t invalid = 0;  // judged documents with an error
    std::size_t skipped = 0;
    std::size_t unreadable = 0;  // files or documents
    std::size_t errors = 0;
    std::size_t warnings = 0;
};

struct Report {
    std::vector<Located> findings;  // by file as given, then by place
    std::vector<Skipped> skipped;
    std::vector<std::string> files;  // each file that was read, in order
    Summary summary;
};

struct HumanStyle {
    bool colour = false;
    bool quiet = false;  // errors only, one line each
};

std::string to_human(const Report& report, const HumanStyle& style);
std::string to_json(const Report& report);
std::string to_sarif(const Report& report, std::string_view version);
std::string to_junit(const Report& report);
std::string to_github(const Report& report);

// "3 files, 4 documents judged, 1 skipped: 2 errors, 1 warning"
std::string summary_line(const Summary& summary);

}  // namespace ossa::validator
