#include "validator/yaml_writer.hpp"

#include <algorithm>

#include "base/yaml.hpp"

namespace ossa::validator {
namespace {

// No text that one of the YAML versions takes for something else: letters first, and then nothing that starts a syntax.
bool is_plain(std::string_view text) {
    if (text.empty() || yaml::resolve(text).kind != yaml::Scalar::Kind::string) {
        return false;
    }
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    if (!is_letter(text.front()) || text.back() == ' ' || text.back() == ':') {
        return false;
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool good = is_letter(c) || (c >= '0' && c <= '9') ||
                          std::string_view{"_-./ ()+@"}.find(c) != std::string_view::npos ||
                          (c == ':' && i + 1 < text.size() && text[i + 1] != ' ');
        if (!good) {
            return false;
        }
    }
    return true;
}

class Writer {
  public:
    Writer(std::string& out, const std::vector<schema::Fill>& fills) : out_(out), fills_(fills) {}

    // `fresh`: the value begins a line (or stands behind "- ").
    void value(json::Value value, unsigned indent, const std::string& pointer, bool behind_dash) {
        if (value.is_object() && (!value.empty() || has_fills(pointer))) {
            bool first = behind_dash;
            for (const json::Member member : value.members()) {
                key(member.name, indent, first);
                first = false;
                std::string below = pointer;
                if (!fills_.empty()) {
                    below += '/';
                    json::append_pointer_token(below, member.name);
                }
                child(member.value, indent, below);
            }
            for (const schema::Fill& fill : fills_) {
                if (parent_of(fill.pointer) == pointer) {
                    key(fill.pointer.substr(fill.pointer.rfind('/') + 1), indent, first);
                    first = false;
                    out_.append(" ").append(fill.value).append("\n");
                }
            }
            return;
        }
        if (value.is_array() && !value.empty()) {
            bool first = behind_dash;
            std::size_t index = 0;
            for (const json::Value element : value.elements()) {
                if (!first) {
                    out_.append(indent, ' ');
                }
                first = false;
                out_.append("-");
                const std::string below = pointer + "/" + std::to_string(index++);
                if (is_block(element, below)) {
                    out_.append(" ");
                    this->value(element, indent + 2, below, true);
                } else {
                    scalar(element);
                }
            }
            return;
        }
        scalar(value);
    }

  private:
    static std::string_view parent_of(std::string_view pointer) { return pointer.substr(0, pointer.rfind('/')); }
    bool has_fills(const std::string& pointer) const {
        return std::any_of(fills_.begin(), fills_.end(),
                           [&](const schema::Fill& fill) { return parent_of(fill.pointer) == pointer; });
    }
    bool is_block(json::Value value, const std::string& pointer) const {
        return (value.is_object() && (!value.empty() || has_fills(pointer))) || (value.is_array() && !value.empty());
    }
    void key(std::string_view name, unsigned indent, bool behind_dash) {
        if (!behind_dash) {
            out_.append(indent, ' ');
        }
        out_.append(yaml_string(name)).append(":");
    }
    void child(json::Value value, unsigned indent, const std::string& pointer) {
        if (is_block(value, pointer)) {
            out_.push_back('\n');
            this->value(value, indent + 2, pointer, false);
        } else {
            scalar(value);
        }
    }
    void scalar(json::Value value) {
        out_.push_back(' ');
        if (value.is_string()) {
            out_.append(yaml_string(*value.as_string()));
        } else {
            json::append(out_, value);
        }
        out_.push_back('\n');
    }

    std::string& out_;
    const std::vector<schema::Fill>& fills_;
};

}  // namespace

std::string yaml_string(std::string_view text) {
    if (is_plain(text)) {
        return std::string{text};
    }
    std::string out;
    json::append_quoted(out, text);
    return out;
}

void append_yaml(std::string& out, json::Value value, unsigned indent) {
    const std::vector<schema::Fill> none;
    Writer(out, none).value(value, indent, "", false);
}

void append_yaml(std::string& out, json::Value value, unsigned indent, const std::string& pointer,
                 const std::vector<schema::Fill>& fills) {
    Writer(out, fills).value(value, indent, pointer, false);
}

}  // namespace ossa::validator
