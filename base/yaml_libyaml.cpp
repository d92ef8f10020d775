// libyaml's events as a tree.
#include <yaml.h>

#include <unordered_map>

#include "base/yaml_tree.hpp"

namespace ossa::yaml {
namespace {

std::string_view text_of(const yaml_char_t* text, std::size_t length) {
    return {reinterpret_cast<const char*>(text), length};
}

std::string_view text_of(const yaml_char_t* text) {
    return text == nullptr ? std::string_view{} : std::string_view{reinterpret_cast<const char*>(text)};
}

Tag tag_of(const yaml_char_t* tag) {
    const std::string_view full = text_of(tag);
    if (full.empty()) {
        return Tag::none;
    }
    constexpr std::string_view prefix = "tag:yaml.org,2002:";
    if (!full.starts_with(prefix)) {
        return Tag::other;
    }
    const std::string_view name = full.substr(prefix.size());
    if (name == "str") {
        return Tag::str;
    }
    if (name == "bool") {
        return Tag::boolean;
    }
    if (name == "int") {
        return Tag::integer;
    }
    if (name == "float") {
        return Tag::number;
    }
    if (name == "null") {
        return Tag::null;
    }
    if (name == "timestamp") {
        return Tag::timestamp;
    }
    if (name == "binary") {
        return Tag::binary;
    }
    return name == "merge" ? Tag::merge : Tag::other;
}

class Parser {
  public:
    explicit Parser(std::string_view text) {
        yaml_parser_initialize(&parser_);
        yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    }
    ~Parser() {
        yaml_event_delete(&event_);
        yaml_parser_delete(&parser_);
    }
    Parser(const Parser&) = delete;
    Parser& operator=(const Parser&) = delete;

    bool next() {
        yaml_event_delete(&event_);
        return yaml_parser_parse(&parser_, &event_) != 0;
    }
    const yaml_event_t& event() const { return event_; }
    const yaml_parser_t& state() const { return parser_; }

  private:
    yaml_parser_t parser_{};
    yaml_event_t event_{};
};

std::string_view line_at(std::string_view source, std::uint32_t line) {
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < line; ++i) {
        const std::size_t end = source.find('\n', at);
        if (end == std::string_view::npos) {
            return {};
        }
        at = end + 1;
    }
    return source.substr(at, source.find('\n', at) - at);
}

std::string hint_for(std::string_view problem, std::string_view line, std::uint32_t column) {
    if (line.find("{{") != std::string_view::npos) {
        return "this looks like a template: render it first, for example helm template . | ossa-validator -";
    }
    const std::string_view behind = column < line.size() ? line.substr(column) : std::string_view{};
    if (behind.starts_with('\t') ||
        line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos) {
        return "indent with spaces, YAML forbids tabs there";
    }
    if (problem.find("cannot start any token") != std::string_view::npos) {
        return "put the value in quotes";
    }
    if (problem.find("mapping values are not allowed") != std::string_view::npos) {
        return "put a text that contains \": \" in quotes, or mend the indentation";
    }
    if (problem.find("did not find expected key") != std::string_view::npos ||
        problem.find("expected '-' indicator") != std::string_view::npos) {
        return "the line must be indented exactly as its neighbours";
    }
    if (problem.find("unknown escape") != std::string_view::npos) {
        return "use single quotes, or write the backslash twice";
    }
    return {};
}

Problem problem_of(const yaml_parser_t& parser, const Tree& tree) {
    Problem problem;
    problem.rule = "yaml/syntax";
    problem.message = parser.problem == nullptr ? "cannot be read" : parser.problem;
    if (parser.error == YAML_READER_ERROR) {
        problem.rule = "yaml/encoding";
        const std::string_view before = tree.source.substr(0, parser.problem_offset);
        const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
        std::uint32_t line = tree.first_line;
        for (const char c : before) {
            line += c == '\n' ? 1U : 0U;
        }
        problem.place = {line, code_points(before.substr(line_start)) + 1, 1};
        problem.hint = "save the file as UTF-8 without control characters";
        return problem;
    }
    const auto line = static_cast<std::uint32_t>(parser.problem_mark.line);
    const auto column = static_cast<std::uint32_t>(parser.problem_mark.column);
    problem.place = {tree.first_line + line, column + 1, 1};
    if (parser.context != nullptr) {
        problem.message = std::string{parser.context} + " from line " +
                          std::to_string(tree.first_line + parser.context_mark.line) + ": " + problem.message;
    }
    problem.hint = hint_for(problem.message, line_at(tree.source, line), column);
    return problem;
}

class TreeBuilder {
  public:
    TreeBuilder(Tree& tree, const Limits& limits) : tree_(tree), limits_(limits) {}

    std::optional<Problem> event(const yaml_event_t& event) {
        const auto line = tree_.first_line + static_cast<std::uint32_t>(event.start_mark.line);
        const auto column = static_cast<std::uint32_t>(event.start_mark.column) + 1;
        const auto here = static_cast<std::uint32_t>(tree_.nodes.size());
        switch (event.type) {
            case YAML_SCALAR_EVENT: {
                const auto& scalar = event.data.scalar;
                anchor(scalar.anchor, here);
                const std::string_view text = tree_.arena.copy(text_of(scalar.value, scalar.length));
                const bool one_line = event.start_mark.line == event.end_mark.line;
                const auto width =
                    one_line ? static_cast<std::uint32_t>(event.end_mark.column - event.start_mark.column) : 0U;
                Style style = Style::quoted;
                if (scalar.style == YAML_PLAIN_SCALAR_STYLE) {
                    // "! x" is said to be no plain scalar although it looks like one.
                    style = scalar.tag != nullptr || scalar.plain_implicit != 0 ? Style::plain : Style::quoted;
                } else if (scalar.style == YAML_LITERAL_SCALAR_STYLE || scalar.style == YAML_FOLDED_SCALAR_STYLE) {
                    style = Style::block;
                }
                tree_.scalar(text, style, line, column, width).tag = tag_of(scalar.tag);
                return {};
            }
            case YAML_ALIAS_EVENT: {
                const std::string name{text_of(event.data.alias.anchor)};
                const auto found = anchors_.find(name);
                if (found == anchors_.end()) {
                    return Problem{
                        "yaml/alias", {line, column, 0}, "no anchor &" + name + " stands before this alias", ""};
                }
                Node& node = tree_.scalar(tree_.arena.copy(name), Style::none, line, column, code_points(name) + 1);
                node.kind = NodeKind::alias;
                node.target = found->second;
                return {};
            }
            case YAML_MAPPING_START_EVENT:
                anchor(event.data.mapping_start.anchor, here);
                return begin(NodeKind::mapping, line, column);
            case YAML_SEQUENCE_START_EVENT:
                anchor(event.data.sequence_start.anchor, here);
                return begin(NodeKind::sequence, line, column);
            case YAML_MAPPING_END_EVENT:
            case YAML_SEQUENCE_END_EVENT: tree_.end(); return {};
            default: return {};
        }
    }
    bool too_many() const { return tree_.nodes.size() > limits_.values_max; }

  private:
    void anchor(const yaml_char_t* name, std::uint32_t index) {
        if (name != nullptr) {
            anchors_.insert_or_assign(std::string{text_of(name)}, index);
        }
    }
    std::optional<Problem> begin(NodeKind kind, std::uint32_t line, std::uint32_t column) {
        if (tree_.open.size() >= limits_.depth_max) {
            return Problem{"yaml/depth",
                           {line, column, 1},
                           "nested deeper than " + std::to_string(limits_.depth_max) + " levels",
                           ""};
        }
        tree_.begin(kind, line, column);
        return {};
    }

    Tree& tree_;
    const Limits& limits_;
    std::unordered_map<std::string, std::uint32_t> anchors_;
};

}  // namespace

std::optional<Problem> scan_libyaml(Tree& tree, const Limits& limits) {
    Parser parser(tree.source);
    TreeBuilder builder(tree, limits);
    while (true) {
        if (!parser.next()) {
            return problem_of(parser.state(), tree);
        }
        const yaml_event_t& event = parser.event();
        if (event.type == YAML_STREAM_END_EVENT) {
            return {};
        }
        if (event.type == YAML_DOCUMENT_END_EVENT) {
            break;
        }
        if (event.type == YAML_DOCUMENT_START_EVENT && event.data.document_start.version_directive != nullptr &&
            event.data.document_start.version_directive->minor != 1) {
            return Problem{"yaml/syntax",
                           {tree.first_line + static_cast<std::uint32_t>(event.start_mark.line), 1, 0},
                           "kubectl reads YAML 1.1 only",
                           "remove the %YAML line"};
        }
        if (auto problem = builder.event(event)) {
            return problem;
        }
        if (builder.too_many()) {
            return Problem{"yaml/size",
                           {tree.first_line + static_cast<std::uint32_t>(event.start_mark.line), 1, 0},
                           "more than " + std::to_string(limits.values_max) + " values in one document",
                           ""};
        }
    }
    // kubectl takes one document of a part and drops what stands behind it.
    const bool readable = parser.next();
    if (!readable || parser.event().type != YAML_STREAM_END_EVENT) {
        const std::size_t line = readable ? parser.event().start_mark.line : parser.state().problem_mark.line;
        tree.rest = {tree.first_line + static_cast<std::uint32_t>(line), 1, 0};
    }
    return {};
}

}  // namespace ossa::yaml
