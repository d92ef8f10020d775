// OSSA_BUG_IF: a state that only a mistake of ours can make. Debug and sanitizer builds abort on the spot; release
// builds count it (bug_count, shown as ossa_bug_total) and throw BugError to the boundary, which fails closed.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace ossa {

class BugError : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

[[noreturn]] void report_bug(const char* condition, const char* why, const char* file, int line);
// Counts a bug that a boundary caught in another shape (an exception that nobody expected).
void count_bug() noexcept;
std::uint64_t bug_count() noexcept;

}  // namespace ossa

#define OSSA_BUG_IF(condition, why)                                  \
    do {                                                             \
        if (condition) [[unlikely]] {                                \
            ::ossa::report_bug(#condition, why, __FILE__, __LINE__); \
        }                                                            \
    } while (false)
