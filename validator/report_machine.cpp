// The formats for programs: JSON, SARIF 2.1.0 (OASIS), JUnit XML, GitHub workflow commands.
#include <algorithm>
#include <map>
#include <set>

#include "validator/report.hpp"
#include "validator/rule_list.hpp"

namespace ossa::validator {
namespace {

std::string_view word(kube::Severity severity) {
    return severity == kube::Severity::error ? "error" : "warning";
}

class JsonText {
  public:
    void name(std::string_view name) {
        comma();
        json::append_quoted(out_, name);
        out_ += ':';
        first_ = true;
    }
    void string(std::string_view text) {
        comma();
        json::append_quoted(out_, text);
    }
    void number(std::size_t value) {
        comma();
        out_ += std::to_string(value);
    }
    void open(char c) {
        comma();
        out_ += c;
        first_ = true;
    }
    void close(char c) {
        out_ += c;
        first_ = false;
    }
    void member(std::string_view key, std::string_view text) {
        name(key);
        string(text);
    }
    void member(std::string_view key, std::size_t value) {
        name(key);
        number(value);
    }
    std::string take() {
        out_ += '\n';
        return std::move(out_);
    }

  private:
    void comma() {
        if (!first_) {
            out_ += ',';
        }
        first_ = false;
    }
    std::string out_;
    bool first_ = true;
};

// A relative URI reference: what is not unreserved is written as %XX, slashes stay.
std::string as_uri(std::string_view path) {
    while (path.starts_with("./")) {
        path.remove_prefix(2);
    }
    std::string out = path.starts_with('/') ? "file://" : "";
    constexpr std::string_view hex = "0123456789ABCDEF";
    for (const char c : path) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           std::string_view{"-._~/"}.find(c) != std::string_view::npos;
        if (plain) {
            out += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            out += '%';
            out += hex[byte >> 4U];
            out += hex[byte & 0xFU];
        }
    }
    return out == "-" ? "stdin" : out;
}

std::string in_xml(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\n':
            case '\t': out += ' '; break;
            default: out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c; break;
        }
    }
    return out;
}

std::string with_hint(const Located& one) {
    return one.hint.empty() ? one.message : one.message + " (" + one.hint + ")";
}

}  // namespace

std::string to_json(const Report& report) {
    JsonText json;
    json.open('{');
    json.name("findings");
    json.open('[');
    for (const Located& one : report.findings) {
        json.open('{');
        json.member("file", one.file);
        json.member("document", one.document);
        json.member("line", one.line);
        json.member("column", one.column);
        json.member("severity", word(one.severity));
        json.member("rule", one.rule);
        json.member("pointer", one.pointer);
        json.member("message", one.message);
        json.member("hint", one.hint);
        json.close('}');
    }
    json.close(']');
    json.name("skipped");
    json.open('[');
    for (const Skipped& one : report.skipped) {
        json.open('{');
        json.member("file", one.file);
        json.member("document", one.document);
        json.member("line", one.line);
        json.member("what", one.what);
        json.close('}');
    }
    json.close(']');
    json.name("summary");
    json.open('{');
    json.member("files", report.summary.files);
    json.member("documents", report.summary.documents);
    json.member("judged", report.summary.judged);
    json.member("invalid", report.summary.invalid);
    json.member("skipped", report.summary.skipped);
    json.member("unreadable", report.summary.unreadable);
    json.member("errors", report.summary.errors);
    json.member("warnings", report.summary.warnings);
    json.close('}');
    json.close('}');
    return json.take();
}

std::string to_sarif(const Report& report, std::string_view version) {
    std::set<std::string> used;
    for (const Located& one : report.findings) {
        used.insert(one.rule);
    }
    std::map<std::string, std::size_t> index;
    JsonText json;
    json.open('{');
    json.member("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json.member("version", "2.1.0");
    json.name("runs");
    json.open('[');
    json.open('{');
    json.name("tool");
    json.open('{');
    json.name("driver");
    json.open('{');
    json.member("name", "ossa-validator");
    json.member("version", version);
    json.name("rules");
    json.open('[');
    for (const std::string& id : used) {
        index.emplace(id, index.size());
        json.open('{');
        json.member("id", id);
        if (const schema::RuleEntry* rule = rule_of(id)) {
            json.name("fullDescription");
            json.open('{');
            json.member("text", rule->text);
            json.close('}');
            if (!rule->example.empty()) {
                json.name("help");
                json.open('{');
                json.member("text", rule->example);
                json.close('}');
            }
            json.name("defaultConfiguration");
            json.open('{');
            json.member("level", word(rule->severity));
            json.close('}');
        }
        json.close('}');
    }
    json.close(']');
    json.close('}');
    json.close('}');
    json.member("columnKind", "unicodeCodePoints");
    json.name("results");
    json.open('[');
    for (const Located& one : report.findings) {
        json.open('{');
        json.member("ruleId", one.rule);
        json.member("ruleIndex", index[one.rule]);
        json.member("level", word(one.severity));
        json.name("message");
        json.open('{');
        json.member("text", with_hint(one));
        json.close('}');
        json.name("locations");
        json.open('[');
        json.open('{');
        json.name("physicalLocation");
        json.open('{');
        json.name("artifactLocation");
        json.open('{');
        json.member("uri", as_uri(one.file));
        json.close('}');
        json.name("region");
        json.open('{');
        json.member("startLine", std::max<std::size_t>(one.line, 1));
        if (one.column != 0) {
            json.member("startColumn", one.column);
            if (one.length != 0) {
                json.member("endColumn", std::size_t{one.column} + one.length);
            }
        }
        json.close('}');
        json.close('}');
        if (!one.pointer.empty()) {
            json.name("logicalLocations");
            json.open('[');
            json.open('{');
            json.member("fullyQualifiedName", one.pointer);
            json.member("kind", "element");
            json.close('}');
            json.close(']');
        }
        json.close('}');
        json.close(']');
        json.name("properties");
        json.open('{');
        json.member("document", one.document);
        json.member("pointer", one.pointer);
        json.close('}');
        json.close('}');
    }
    json.close(']');
    json.close('}');
    json.close(']');
    json.close('}');
    return json.take();
}

std::string to_junit(const Report& report) {
    // A test case for each file; warnings go to its output.
    std::size_t failures = 0;
    std::string cases;
    auto finding = report.findings.begin();
    for (const std::string& file : report.files) {
        std::string errors;
        std::string warnings;
        for (; finding != report.findings.end() && finding->file == file; ++finding) {
            const std::string line = std::to_string(finding->line) + ":" + std::to_string(finding->column) + " " +
                                     with_hint(*finding) + " [" + finding->rule + "]";
            if (finding->severity == kube::Severity::error) {
                errors += "    <failure type=\"" + in_xml(finding->rule) + "\" message=\"" + in_xml(line) + "\"/>\n";
            } else {
                warnings += in_xml(line) + "\n";
            }
        }
        failures += errors.empty() ? 0 : 1;
        cases += "  <testcase classname=\"ossa-validator\" name=\"" + in_xml(file) + "\"";
        if (errors.empty() && warnings.empty()) {
            cases += "/>\n";
        } else {
            cases += ">\n" + errors + (warnings.empty() ? "" : "    <system-out>" + warnings + "</system-out>\n") +
                     "  </testcase>\n";
        }
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"ossa-validator\" tests=\"" +
           std::to_string(report.files.size()) + "\" failures=\"" + std::to_string(failures) +
           "\" errors=\"0\" skipped=\"0\">\n" + cases + "</testsuite>\n</testsuites>\n";
}

std::string to_github(const Report& report) {
    const auto escape = [](std::string_view text, bool property) {
        std::string out;
        for (const char c : text) {
            if (c == '%' || c == '\n' || c == '\r' || (property && (c == ':' || c == ','))) {
                out += c == '%' ? "%25" : c == '\n' ? "%0A" : c == '\r' ? "%0D" : c == ':' ? "%3A" : "%2C";
            } else {
                out += c;
            }
        }
        return out;
    };
    std::string out;
    for (const Located& one : report.findings) {
        out += "::" + std::string{word(one.severity)} + " file=" + escape(one.file, true);
        if (one.line != 0) {
            out += ",line=" + std::to_string(one.line) + ",col=" + std::to_string(std::max(one.column, 1U));
        }
        out += ",title=" + escape(one.rule, true) + "::" + escape(with_hint(one), false) + "\n";
    }
    for (const Skipped& one : report.skipped) {
        out += "::notice file=" + escape(one.file, true) + ",line=" + std::to_string(std::max(one.line, 1U)) +
               ",title=skipped::" + escape(one.what, false) + "\n";
    }
    return out;
}

}  // namespace ossa::validator
