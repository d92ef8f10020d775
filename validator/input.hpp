// Finds and reads what the command line names: files, folders, patterns, "-".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ossa::validator {

inline constexpr std::size_t file_bytes_max = std::size_t{256} << 20;

struct Inputs {
    std::vector<std::string> files;         // each once; "-" is standard input
    std::vector<std::string> without_hits;  // folders and patterns that gave nothing
};

// A folder gives its *.yaml, *.yml and *.json, sorted, without .git; a pattern (* ? [..] and ** over folders) the files
// that it matches, sorted. A name that does not exist is kept: reading it gives the error.
Inputs find_inputs(const std::vector<std::string>& arguments);

// Does a name match a pattern? "*" and "?" stay within a folder, "**" crosses them.
bool matches(std::string_view pattern, std::string_view name);

// again: set to whether it can be read another time (standard input and pipes cannot).
Result<std::string> read_input(const std::string& file, bool* again = nullptr);

}  // namespace ossa::validator
