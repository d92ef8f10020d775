#include "base/bug.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace ossa {
namespace {
std::atomic<std::uint64_t> bugs{0};
}

void count_bug() noexcept {
    bugs.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t bug_count() noexcept {
    return bugs.load(std::memory_order_relaxed);
}

void report_bug(const char* condition, const char* why, const char* file, int line) {
    std::string text = std::string("bug: ") + why + " (" + condition + ", " + file + ":" + std::to_string(line) + ")";
#ifdef OSSA_ABORT_ON_BUG
    std::fprintf(stderr, "%s\n", text.c_str());
    std::abort();
#else
    count_bug();
    throw BugError(text);
#endif
}

}  // namespace ossa
