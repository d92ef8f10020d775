#include "base/yaml.hpp"

#include <algorithm>

#include "base/yaml_tree.hpp"

namespace ossa::yaml {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// Go's unicode.IsSpace, ASCII part.
bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

std::uint32_t lines_in(std::string_view text) {
    return static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_space(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

// Nothing but blanks and comments: no need to ask a scanner.
bool is_blank(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        while (!line.empty() && (line.front() == ' ' || line.front() == '\r')) {
            line.remove_prefix(1);
        }
        if (!line.empty() && line.front() != '#') {
            return false;
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return true;
}

}  // namespace

Splitter::Splitter(std::string_view stream) : stream_(stream) {}

std::optional<Part> Splitter::next() {
    if (at_ >= stream_.size()) {
        return {};
    }
    if (json_possible_) {
        std::size_t start = at_;
        while (start < stream_.size() && is_space(stream_[start])) {
            ++start;
        }
        json_possible_ = start < stream_.size() && stream_[start] == '{';
        if (json_possible_) {
            const std::uint32_t line = line_ + lines_in(stream_.substr(at_, start - at_));
            std::size_t end = start;
            json_problem_ = scan_json(stream_, end, line, UINT32_MAX, nullptr);
            if (!json_problem_) {
                Part part;
                part.text = stream_.substr(start, end - start);
                part.first_line = line;
                part.notation = Notation::json;
                // kubectl wants no separator between JSON values, and takes what follows as YAML if it is none.
                while (end < stream_.size() && is_space(stream_[end])) {
                    ++end;
                }
                line_ += lines_in(stream_.substr(at_, end - at_));
                at_ = end;
                return part;
            }
            json_possible_ = false;
        }
    }
    Part part;
    part.first_line = line_;
    std::size_t start = at_;
    std::size_t at = at_;
    while (at < stream_.size()) {
        const std::size_t newline = stream_.find('\n', at);
        const std::size_t behind = newline == std::string_view::npos ? stream_.size() : newline + 1;
        if (stream_.substr(at).starts_with("---")) {
            const std::string_view rest = trimmed(stream_.substr(at + 3, behind - at - 3));
            if (!rest.empty() && rest[0] != '#') {
                part.problem = Problem{"yaml/separator",
                                       {line_, 4, 0},
                                       "kubectl refuses text on a separator line: " + std::string{rest.substr(0, 40)},
                                       "write it on the next line"};
            }
            ++line_;
            part.text = stream_.substr(start, at - start);
            at_ = behind;
            if (!part.text.empty() || part.problem) {
                return part;
            }
            start = behind;
            at = behind;
            part.first_line = line_;
            continue;
        }
        ++line_;
        at = behind;
    }
    at_ = stream_.size();
    if (start == at_) {
        return {};
    }
    part.text = stream_.substr(start);
    return part;
}

Document::Document() : tree_(std::make_unique<Tree>()) {}
Document::~Document() = default;
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;

std::optional<Problem> Document::read(const Part& part, const Limits& limits, ReadAs how) {
    Tree& tree = *tree_;
    tree.clear();
    remarks_.clear();
    has_value_ = false;
    tree.source = part.text;
    tree.first_line = part.first_line;
    tree.notation = part.notation;
    if (part.text.size() > limits.bytes_max) {
        return Problem{"yaml/size",
                       {part.first_line, 1, 0},
                       "the document is larger than " + std::to_string(limits.bytes_max >> 20U) + " MiB",
                       "the API server would not take it either"};
    }
    const json::Limits json_limits{limits.bytes_max, limits.depth_max, limits.values_max};
    if (part.notation == Notation::json) {
        // The same reader as the webhook's; the tree is made when a place is asked for.
        if (value_.parse(part.text, json_limits)) {
            has_value_ = true;
            return {};
        }
        std::size_t at = 0;
        if (auto problem = scan_json(part.text, at, part.first_line, limits.depth_max, &tree)) {
            return problem;
        }
    } else {
        if (tree.source.starts_with(byte_order_mark)) {
            tree.source.remove_prefix(byte_order_mark.size());
        }
        if (tree.source.starts_with("\xFF\xFE") || tree.source.starts_with("\xFE\xFF")) {
            return Problem{"yaml/encoding", {part.first_line, 1, 1}, "this is UTF-16", "save the file as UTF-8"};
        }
        if (is_blank(tree.source)) {
            return {};
        }
        if (!tree.source.ends_with('\n')) {
            // kubectl reads by lines and ends each with a newline, which a block scalar at the end shows.
            char* const copy = tree.arena.take(tree.source.size() + 1);
            std::memcpy(copy, tree.source.data(), tree.source.size());
            copy[tree.source.size()] = '\n';
            tree.source = {copy, tree.source.size() + 1};
        }
        if (how == ReadAs::libyaml || !scan_quick(tree, limits)) {
            tree.nodes.clear();
            tree.open.clear();
            if (auto problem = scan_libyaml(tree, limits)) {
                return problem;
            }
        }
        if (tree.nodes.empty()) {
            return {};
        }
    }
    json::Builder builder;
    if (auto problem = emit(tree, limits, builder, remarks_)) {
        return problem;
    }
    if (tree.rest.known()) {
        remarks_.push_back({RemarkKind::ignored_rest, tree.rest, {}, "", "", ""});
    }
    auto built = builder.finish(json_limits);
    if (!built) {
        return Problem{"yaml/syntax", {part.first_line, 1, 0}, built.error().message(), ""};
    }
    if (built->root().is_null() && part.notation == Notation::yaml) {
        return {};
    }
    value_ = std::move(*built);
    has_value_ = true;
    return {};
}

std::optional<Spot> Document::find(std::string_view pointer) {
    Tree& tree = *tree_;
    if (tree.nodes.empty()) {
        std::size_t at = 0;
        if (tree.notation != Notation::json || scan_json(tree.source, at, tree.first_line, UINT32_MAX, &tree)) {
            return {};
        }
    }
    std::uint32_t at = 0;
    Spot spot;
    const auto resolved = [&](std::uint32_t index) {
        for (int hops = 0; tree.nodes[index].kind == NodeKind::alias && hops < 8; ++hops) {
            index = tree.nodes[index].target;
        }
        return index;
    };
    // The last member of the name, merge keys in go-yaml's order.
    struct Member {
        std::uint32_t name = 0;
        std::uint32_t value = 0;
    };
    const auto member_of = [&](auto&& self, std::uint32_t mapping, std::string_view name, int hops) -> Member {
        Member found;
        for (std::uint32_t i = mapping + 1; i < tree.nodes[mapping].next;) {
            const std::uint32_t value = tree.nodes[i].next;
            if (tree.notation == Notation::yaml && is_merge(tree.nodes[i])) {
                if (hops < 8) {
                    const std::uint32_t from = resolved(value);
                    Member merged;
                    if (tree.nodes[from].kind == NodeKind::mapping) {
                        merged = self(self, from, name, hops + 1);
                    } else if (tree.nodes[from].kind == NodeKind::sequence) {
                        for (std::uint32_t j = from + 1; j < tree.nodes[from].next && merged.value == 0;
                             j = tree.nodes[j].next) {
                            if (const std::uint32_t one = resolved(j); tree.nodes[one].kind == NodeKind::mapping) {
                                merged = self(self, one, name, hops + 1);
                            }
                        }
                    }
                    found = merged.value != 0 ? merged : found;
                }
            } else if (name_of(tree, i) == name) {
                found = {i, value};
            }
            i = tree.nodes[value].next;
        }
        return found;
    };
    std::string token;
    while (!pointer.empty()) {
        pointer.remove_prefix(1);
        const std::size_t end = std::min(pointer.find('/'), pointer.size());
        token.clear();
        for (std::size_t i = 0; i < end; ++i) {
            if (pointer[i] == '~' && i + 1 < end) {
                token.push_back(pointer[++i] == '1' ? '/' : '~');
            } else {
                token.push_back(pointer[i]);
            }
        }
        pointer.remove_prefix(end);
        const std::uint32_t container = resolved(at);
        const Node& node = tree.nodes[container];
        if (node.kind == NodeKind::mapping) {
            const Member member = member_of(member_of, container, token, 0);
            if (member.value == 0) {
                return {};
            }
            spot.key = tree.nodes[member.name].place();
            at = member.value;
        } else if (node.kind == NodeKind::sequence) {
            std::size_t wanted = 0;
            for (const char c : token) {
                if (c < '0' || c > '9') {
                    return {};
                }
                wanted = wanted * 10 + static_cast<std::size_t>(c - '0');
            }
            std::uint32_t child = container + 1;
            while (child < node.next && wanted > 0) {
                child = tree.nodes[child].next;
                --wanted;
            }
            if (child >= node.next) {
                return {};
            }
            spot.key = {};
            at = child;
        } else {
            return {};
        }
    }
    spot.value = tree.nodes[at].place();
    const Node& node = tree.nodes[resolved(at)];
    spot.style = node.kind == NodeKind::scalar ? node.style : Style::none;
    spot.text = node.kind == NodeKind::scalar ? node.view() : std::string_view{};
    spot.tagged = node.tag != Tag::none;
    return spot;
}

}  // namespace ossa::yaml
