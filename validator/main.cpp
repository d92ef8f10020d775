#include <cstdio>
#include <exception>

#include "validator/cli.hpp"

int main(int argc, char** argv) {
    try {
        return ossa::validator::cli(argc, argv);
    } catch (const std::exception& error) {  // the one boundary of this program
        std::fprintf(stderr, "ossa-validator: a bug of ours: %s\n", error.what());
        return 70;
    }
}
