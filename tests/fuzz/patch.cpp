#include "fuzz/patch.hpp"

#include <algorithm>
#include <charconv>

#include "fuzz/targets.hpp"

namespace ossa::fuzz {
namespace {

using testing::Tree;

std::vector<std::string> tokens(std::string_view pointer) {
    std::vector<std::string> out;
    demand(pointer.empty() || pointer.front() == '/', "a pointer starts with /", pointer);
    for (const char c : pointer) {
        if (c == '/') {
            out.emplace_back();
        } else if (!out.back().empty() && out.back().back() == '\1') {
            out.back().back() = c == '0' ? '~' : '/';
        } else {
            out.back().push_back(c == '~' ? '\1' : c);
        }
    }
    return out;
}

auto find(Tree& parent, const std::string& token, std::string_view pointer) {
    if (parent.kind == Tree::Kind::object) {
        return std::find_if(parent.children.begin(), parent.children.end(),
                            [&](const auto& child) { return child.first == token; });
    }
    demand(parent.kind == Tree::Kind::array, "a patch leads through objects and lists", pointer);
    std::size_t index = 0;
    const auto parsed = std::from_chars(token.data(), token.data() + token.size(), index);
    demand(parsed.ec == std::errc{} && parsed.ptr == token.data() + token.size() && index <= parent.children.size(),
           "a patch names elements that are there", pointer);
    return parent.children.begin() + static_cast<std::ptrdiff_t>(index);
}

}  // namespace

void apply_patch(Tree& document, json::Value patch) {
    demand(patch.is_array(), "a patch is a list", json::to_text(patch));
    for (const json::Value step : patch.elements()) {
        const std::string_view op = step.at("op").string_or("");
        const std::string_view path = step.at("path").string_or("");
        const auto way = tokens(path);
        demand(!way.empty(), "no operation at the root", path);
        Tree* parent = &document;
        for (std::size_t i = 0; i + 1 < way.size(); ++i) {
            const auto next = find(*parent, way[i], path);
            demand(next != parent->children.end(), "a patch leads to a place that is there", path);
            parent = &next->second;
        }
        const auto at = find(*parent, way.back(), path);
        if (op == "add") {
            const bool object = parent->kind == Tree::Kind::object;
            demand(!object || at == parent->children.end(), "a default is added only where nothing stands", path);
            parent->children.insert(at, {object ? way.back() : "", Tree::of(step.at("value"))});
            continue;
        }
        demand(at != parent->children.end(), "a patch changes what is there", path);
        if (op == "remove") {
            parent->children.erase(at);
        } else if (op == "replace") {
            at->second = Tree::of(step.at("value"));
        } else {
            demand(op == "test", "a known operation", op);
            demand(at->second.print() == Tree::of(step.at("value")).print(), "a test holds", path);
        }
    }
}

std::string from_base64(std::string_view text) {
    static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    demand(text.size() % 4 == 0, "base64 comes in fours", text);
    std::string out;
    std::uint32_t bits = 0;
    int held = 0;
    std::size_t padding = 0;
    for (const char c : text) {
        if (c == '=') {
            ++padding;
            continue;
        }
        const std::size_t value = alphabet.find(c);
        demand(value != std::string_view::npos && padding == 0, "base64 has its own letters", text);
        bits = (bits << 6U) | static_cast<std::uint32_t>(value);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out.push_back(static_cast<char>((bits >> static_cast<unsigned>(held)) & 0xFFU));
        }
    }
    demand(padding <= 2, "base64 ends with two = at the most", text);
    return out;
}

}  // namespace ossa::fuzz
