#include <malloc.h>

#include <cstdio>
#include <exception>

#include "validator/cli.hpp"

int main(int argc, char** argv) {
    // Memory comes in large pieces: each growth of a heap stops the page faults of the other threads.
    mallopt(M_TOP_PAD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    try {
        return ossa::validator::cli(argc, argv);
    } catch (const std::exception& error) {  // the one boundary of this program
        std::fprintf(stderr, "ossa-validator: a bug of ours: %s\n", error.what());
        return 70;
    }
}
