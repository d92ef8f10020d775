// Mutations: JSON documents that are a few edits away from given ones, for tests that compare two readers or judges.
// Everything follows from the random engine, so that a printed seed repeats a run.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace ossa::testing {

struct Child;

// A document that can be edited. Scalars keep their JSON text, so any spelling of a number can stand there.
struct Tree {
    enum class Kind : std::uint8_t { scalar, array, object };
    Kind kind = Kind::scalar;
    std::string text = "null";
    std::vector<Child> children;  // elements have no name

    static Tree of(json::Value value);
    static Tree scalar(std::string text);
    std::string print() const;
};

// No std::pair: clang wants it complete inside Tree.
struct Child {
    Child(std::string name, Tree value) : first(std::move(name)), second(std::move(value)) {}
    std::string first;
    Tree second;
};

using Random = std::mt19937_64;

// One to four edits: drop, replace, rename, swap, wrap in lists or objects, repeat, odd numbers, odd texts. `donors`
// hold names and values that are worth moving elsewhere. The result may repeat a member name, which json::Document
// refuses.
void mutate(Tree& tree, const std::vector<Tree>& donors, Random& random);

// The seed of this run: $OSSA_SEED, else `otherwise`.
std::uint64_t seed_or(std::uint64_t otherwise);

}  // namespace ossa::testing
