#include "conformance/mutate.hpp"

#include <array>
#include <cstdlib>

namespace ossa::testing {
namespace {

std::string quoted(std::string_view text) {
    std::string out;
    json::append_quoted(out, text);
    return out;
}

std::string repeated(std::string_view piece, std::size_t times) {
    std::string out;
    for (std::size_t i = 0; i < times; ++i) {
        out.append(piece);
    }
    return out;
}

template <class List>
const auto& one_of(const List& list, Random& random) {
    return list[random() % list.size()];
}

// Every spelling that a reader or a judge might take for something else.
const std::vector<std::string>& numbers() {
    static const std::vector<std::string> all{"0",
                                              "-0",
                                              "-0.0",
                                              "0.0",
                                              "1",
                                              "-1",
                                              "30",
                                              "30.0",
                                              "3e1",
                                              "3E+1",
                                              "300e-1",
                                              "0.3e2",
                                              "30.5",
                                              "1e-7",
                                              "1e30",
                                              "1.5e300",
                                              "-1e300",
                                              "9007199254740993",
                                              "9223372036854775807",
                                              "9223372036854775808",
                                              "-9223372036854775808",
                                              "-9223372036854775809",
                                              "18446744073709551615",
                                              "18446744073709551616",
                                              "18446744073709552000",
                                              "123456789012345678901234567890",
                                              "0.1",
                                              "1.0000000000000002",
                                              "99999999999999999999.5",
                                              "5e-324",
                                              "2147483648"};
    return all;
}

const std::vector<std::string>& texts() {
    static const std::vector<std::string> all{"",
                                              "1.0",
                                              "1.0.0",
                                              "01.0.0",
                                              "1.0.0-rc.1+b",
                                              "1.0.0\n",
                                              "v1.0.0",
                                              "1.0",
                                              "1.0\n",
                                              "a",
                                              "-a",
                                              "a-",
                                              "A",
                                              "a_b",
                                              "a\nb",
                                              std::string("a\0b", 3),
                                              std::string(1, '\0'),
                                              repeated("a", 63),
                                              repeated("a", 64),
                                              repeated("n", 200),
                                              repeated("n", 201),
                                              repeated("😀", 63),
                                              repeated("😀", 200),
                                              repeated("😀", 201),
                                              repeated("é", 200),
                                              "😀",
                                              "日本",
                                              "\xE2\x80\xA8",
                                              "\xED\x9F\xBF",
                                              "\xEF\xBF\xBF",
                                              "\\",
                                              "\"",
                                              "/",
                                              "~",
                                              "~1",
                                              "k8s",
                                              "K8S",
                                              "docker ",
                                              "http",
                                              "none",
                                              "jwt",
                                              "true",
                                              "null",
                                              "3",
                                              "https://example.org/a",
                                              "http://",
                                              "http:",
                                              "a:b",
                                              "1:b",
                                              "//example.org",
                                              "/schemas/a",
                                              "urn:x:y",
                                              "http://[::1]:80/",
                                              "http://[::1",
                                              "http://[v1.a]/",
                                              "http://[::1.2.3.4]/x?y#z",
                                              "http://a b/",
                                              "http://a/%2",
                                              "http://a/%zz",
                                              "http://a/%20",
                                              "http://user:p@h:8080/p",
                                              "http://h:8x/",
                                              "mailto:a@b",
                                              "http://ä.org/",
                                              "http://h/#a#b",
                                              "http://h/?a?b",
                                              "http://h/[x]",
                                              "::",
                                              "a+b-c.d://",
                                              "file:///etc/passwd",
                                              repeated("x", 3000)};
    return all;
}

Tree random_scalar(Random& random) {
    switch (random() % 6) {
        case 0: return Tree::scalar("null");
        case 1: return Tree::scalar(random() % 2 == 0 ? "true" : "false");
        case 2:
        case 3: return Tree::scalar(one_of(numbers(), random));
        default: return Tree::scalar(quoted(one_of(texts(), random)));
    }
}

Tree random_value(Random& random) {
    switch (random() % 8) {
        case 0: return {Tree::Kind::object, "", {}};
        case 1: return {Tree::Kind::array, "", {}};
        case 2: return {Tree::Kind::array, "", {{"", random_scalar(random)}, {"", random_scalar(random)}}};
        case 3: return {Tree::Kind::object, "", {{"type", random_scalar(random)}, {"x", random_scalar(random)}}};
        default: return random_scalar(random);
    }
}

// A node drawn at random: the way down ends at each level with some luck, so that inner nodes are drawn as well.
Tree& draw(Tree& root, Random& random) {
    Tree* at = &root;
    while (!at->children.empty() && random() % 5 != 0) {
        at = &at->children[random() % at->children.size()].second;
    }
    return *at;
}

Tree& draw_parent(Tree& root, Random& random) {
    Tree* at = &root;
    for (Tree* next = at; !next->children.empty();) {
        at = next;
        if (random() % 4 == 0) {
            break;
        }
        next = &next->children[random() % next->children.size()].second;
    }
    return *at;
}

std::string random_name(const std::vector<Tree>& donors, Random& random) {
    Tree donor = one_of(donors, random);
    const Tree& parent = draw_parent(donor, random);
    if (parent.kind == Tree::Kind::object && !parent.children.empty() && random() % 4 != 0) {
        return one_of(parent.children, random).first;
    }
    static const std::array<std::string, 8> odd{"", "pattern", "a/b~c", "é", "x-own", "type", "[0]", "0"};
    return one_of(odd, random);
}

void edit(Tree& root, const std::vector<Tree>& donors, Random& random) {
    Tree& node = draw(root, random);
    Tree& parent = draw_parent(root, random);
    switch (random() % 12) {
        case 0:  // drop a child
            if (!parent.children.empty()) {
                parent.children.erase(parent.children.begin() +
                                      static_cast<std::ptrdiff_t>(random() % parent.children.size()));
            }
            return;
        case 1: node = random_value(random); return;
        case 2:  // rename, or misspell
            if (parent.kind == Tree::Kind::object && !parent.children.empty()) {
                std::string& name = parent.children[random() % parent.children.size()].first;
                if (random() % 2 == 0 || name.empty()) {
                    name = random_name(donors, random);
                } else {
                    name[random() % name.size()] = "aAzZ0_"[random() % 6];
                }
            }
            return;
        case 3: {  // swap two children's values: types change places
            if (parent.children.size() > 1) {
                Tree& a = parent.children[random() % parent.children.size()].second;
                Tree& b = parent.children[random() % parent.children.size()].second;
                if (&a != &b) {
                    std::swap(a, b);
                }
            }
            return;
        }
        case 4: {  // into a list of itself, once or twice
            Tree list{Tree::Kind::array, "", {{"", node}}};
            if (random() % 2 == 0) {
                list.children.emplace_back("", node);
            }
            node = std::move(list);
            return;
        }
        case 5: {  // deep nest
            Tree inner = std::move(node);
            for (std::size_t n = random() % 40; n > 0; --n) {
                const bool list = random() % 2 == 0;
                Tree outer{list ? Tree::Kind::array : Tree::Kind::object, "", {}};
                outer.children.emplace_back(list ? "" : "input", std::move(inner));
                inner = std::move(outer);
            }
            node = std::move(inner);
            return;
        }
        case 6: node = Tree::scalar(one_of(numbers(), random)); return;
        case 7: node = Tree::scalar(quoted(one_of(texts(), random))); return;
        case 8: {  // a piece of another document
            Tree donor = one_of(donors, random);
            node = draw(donor, random);
            return;
        }
        case 9: {  // one more member or element
            if (parent.kind == Tree::Kind::object) {
                parent.children.emplace_back(random_name(donors, random), random_value(random));
            } else if (parent.kind == Tree::Kind::array) {
                const std::size_t times = random() % 3 + 1;
                for (std::size_t i = 0; i < times; ++i) {
                    parent.children.emplace_back(
                        "", parent.children.empty() ? random_value(random) : parent.children[0].second);
                }
            }
            return;
        }
        case 10: node.children.clear(); return;
        default: node = random_scalar(random); return;
    }
}

void print_to(std::string& out, const Tree& tree) {
    if (tree.kind == Tree::Kind::scalar) {
        out.append(tree.text);
        return;
    }
    const bool list = tree.kind == Tree::Kind::array;
    char before = list ? '[' : '{';
    for (const auto& [name, child] : tree.children) {
        out.push_back(before);
        before = ',';
        if (!list) {
            json::append_quoted(out, name);
            out.push_back(':');
        }
        print_to(out, child);
    }
    if (tree.children.empty()) {
        out.push_back(before);
    }
    out.push_back(list ? ']' : '}');
}

}  // namespace

Tree Tree::scalar(std::string text) {
    return {Kind::scalar, std::move(text), {}};
}

Tree Tree::of(json::Value value) {
    if (value.is_object()) {
        Tree out{Kind::object, "", {}};
        for (const auto [name, member] : value.members()) {
            out.children.emplace_back(std::string(name), of(member));
        }
        return out;
    }
    if (value.is_array()) {
        Tree out{Kind::array, "", {}};
        for (const json::Value element : value.elements()) {
            out.children.emplace_back("", of(element));
        }
        return out;
    }
    return scalar(json::to_text(value));
}

std::string Tree::print() const {
    std::string out;
    print_to(out, *this);
    return out;
}

void mutate(Tree& tree, const std::vector<Tree>& donors, Random& random) {
    for (std::size_t edits = random() % 4 + 1; edits > 0; --edits) {
        edit(tree, donors, random);
    }
}

std::uint64_t seed_or(std::uint64_t otherwise) {
    const char* text = std::getenv("OSSA_SEED");
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace ossa::testing
