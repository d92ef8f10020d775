// The parsed form of one part, between a scanner (libyaml, the quick one, or that for JSON) and the value. Private to
// base/yaml*.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"

namespace ossa::yaml {

enum class NodeKind : std::uint8_t { scalar, mapping, sequence, alias };
enum class Tag : std::uint8_t { none, str, boolean, integer, number, null, timestamp, binary, merge, other };

// Nodes stand in document order: the children of a container follow it, names and values by turns in a mapping.
struct Node {
    const char* text = nullptr;  // scalars: quotes and escapes undone; alias: the anchor's name
    std::uint32_t length = 0;
    std::uint32_t next = 0;  // the node behind this one and all it holds
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t width = 0;   // code points, 0: to the end of the line
    std::uint32_t target = 0;  // alias: the node it stands for
    NodeKind kind = NodeKind::scalar;
    Style style = Style::none;
    Tag tag = Tag::none;

    std::string_view view() const noexcept { return {text, length}; }
    Place place() const noexcept { return {line, column, width}; }
};

// Keeps text whose address must stay.
class Arena {
  public:
    char* take(std::size_t bytes) {
        if (bytes > left_) {
            const std::size_t size = bytes > block_bytes ? bytes : block_bytes;
            if (blocks_.empty()) {
                first_is_usual_ = size == block_bytes;
            }
            blocks_.push_back(std::make_unique<char[]>(size));
            at_ = blocks_.back().get();
            left_ = size;
        }
        char* taken = at_;
        at_ += bytes;
        left_ -= bytes;
        return taken;
    }
    std::string_view copy(std::string_view text) {
        char* to = take(text.size());
        if (!text.empty()) {
            std::memcpy(to, text.data(), text.size());
        }
        return {to, text.size()};
    }
    // Keeps one block of the usual size for the next document.
    void clear() {
        if (!blocks_.empty() && first_is_usual_) {
            blocks_.resize(1);
            at_ = blocks_.front().get();
            left_ = block_bytes;
            return;
        }
        blocks_.clear();
        at_ = nullptr;
        left_ = 0;
    }

  private:
    static constexpr std::size_t block_bytes = std::size_t{16} << 10;
    std::vector<std::unique_ptr<char[]>> blocks_;
    char* at_ = nullptr;
    std::size_t left_ = 0;
    bool first_is_usual_ = false;
};

struct Document::Tree {
    std::vector<Node> nodes;
    Arena arena;
    std::string_view source;
    std::uint32_t first_line = 1;
    Notation notation = Notation::yaml;
    Place rest;                       // a further document in the same part
    std::vector<std::uint32_t> open;  // work space of the scanners
    std::string names;                // work space of the emitter

    void clear() {
        nodes.clear();
        arena.clear();
        open.clear();
        rest = {};
    }
    // Containers are opened and closed; close() sets `next`.
    void begin(NodeKind kind, std::uint32_t line, std::uint32_t column, Tag tag = Tag::none) {
        open.push_back(static_cast<std::uint32_t>(nodes.size()));
        Node node;
        node.kind = kind;
        node.line = line;
        node.column = column;
        node.width = 1;
        node.tag = tag;
        nodes.push_back(node);
    }
    void end() {
        nodes[open.back()].next = static_cast<std::uint32_t>(nodes.size());
        open.pop_back();
    }
    Node& scalar(std::string_view text, Style style, std::uint32_t line, std::uint32_t column, std::uint32_t width) {
        Node node;
        node.text = text.data();
        node.length = static_cast<std::uint32_t>(text.size());
        node.line = line;
        node.column = column;
        node.width = width;
        node.style = style;
        node.next = static_cast<std::uint32_t>(nodes.size()) + 1;
        nodes.push_back(node);
        return nodes.back();
    }
};

using Tree = Document::Tree;

// Scanners: fill the tree from tree.source. An empty tree means that there is no content.
std::optional<Problem> scan_libyaml(Tree& tree, const Limits& limits);
// Reads what everyday manifests are made of. False: not sure, ask libyaml; the tree is then to be cleared.
bool scan_quick(Tree& tree, const Limits& limits);
// Reads one JSON value at the start of source[at..] and moves `at` behind it. With no tree it only checks the grammar.
std::optional<Problem> scan_json(std::string_view source, std::size_t& at, std::uint32_t first_line, unsigned depth_max,
                                 Tree* tree);

// Tree to value, with remarks.
std::optional<Problem> emit(Tree& tree, const Limits& limits, json::Builder& builder, std::vector<Remark>& remarks);
// A mapping's name as the string that it becomes; nullopt: it cannot be one. May write to the arena.
std::optional<std::string_view> name_of(Tree& tree, std::uint32_t index);
bool is_merge(const Node& name);
std::string pointer_to(Tree& tree, std::uint32_t index);

std::uint32_t code_points(std::string_view text) noexcept;

}  // namespace ossa::yaml
