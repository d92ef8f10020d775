#include <algorithm>

#include "validator/report.hpp"

namespace ossa::validator {
namespace {

constexpr std::string_view reset = "\x1b[0m";
constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view red = "\x1b[1;31m";
constexpr std::string_view yellow = "\x1b[1;33m";
constexpr std::string_view cyan = "\x1b[36m";
constexpr std::string_view dim = "\x1b[2m";

class Human {
  public:
    explicit Human(const HumanStyle& style) : style_(style) {}

    void finding(const Located& one) {
        const bool error = one.severity == kube::Severity::error;
        if (style_.quiet && !error) {
            return;
        }
        paint(bold, place(one.file, one.line, one.column));
        out_ += ": ";
        paint(error ? red : yellow, error ? "error" : "warning");
        out_ += ": " + printable(one.message);
        paint(dim, " [" + one.rule + "]");
        out_ += '\n';
        if (style_.quiet) {
            return;
        }
        if (one.line != 0) {
            excerpt(one);
        }
        if (!one.hint.empty()) {
            out_ += "      ";
            paint(cyan, "hint: ");
            out_ += printable(one.hint) + "\n";
        }
    }

    void skipped(const Skipped& one) {
        if (!style_.quiet) {
            paint(bold, place(one.file, one.line, 0));
            out_ += ": ";
            paint(dim, "skipped");
            out_ += ": " + printable(one.what) + "\n";
        }
    }

    std::string take() { return std::move(out_); }
    void line(const std::string& text) { out_ += text + "\n"; }

  private:
    static std::string place(const std::string& file, std::uint32_t line, std::uint32_t column) {
        std::string out = file == "-" ? "<stdin>" : file;
        if (line != 0) {
            out += ":" + std::to_string(line);
        }
        return column != 0 ? out + ":" + std::to_string(column) : out;
    }
    // Control characters of user text must not reach the terminal.
    static std::string printable(std::string_view text) {
        std::string out;
        for (const char c : text) {
            out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c);
        }
        return out;
    }
    void paint(std::string_view colour, std::string_view text) {
        if (style_.colour) {
            out_.append(colour).append(text).append(reset);
        } else {
            out_.append(text);
        }
    }

    // The line, cut around the place if it is long, and a caret below.
    void excerpt(const Located& one) {
        constexpr std::size_t width_max = 100;
        std::vector<std::string_view> letters;  // by code point
        const std::string_view line = one.excerpt;
        for (std::size_t i = 0; i < line.size();) {
            std::size_t end = i + 1;
            while (end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) {
                ++end;
            }
            letters.push_back(line.substr(i, end - i));
            i = end;
        }
        const std::size_t column = std::min<std::size_t>(one.column == 0 ? 0 : one.column - 1, letters.size());
        const std::size_t from = column > width_max - 20 ? column - 20 : 0;
        const std::size_t to = std::min(letters.size(), from + width_max);
        const std::string number = std::to_string(one.line);
        out_ += std::string(number.size() < 5 ? 5 - number.size() : 0, ' ');
        paint(dim, number + " | ");
        std::string below;
        if (from > 0) {
            out_ += "…";
            below += ' ';
        }
        for (std::size_t i = from; i < to; ++i) {
            out_ += letters[i] == "\t" ? std::string_view{" "} : std::string_view{printable_letter(letters[i])};
            if (i < column) {
                below += ' ';
            }
        }
        out_ += to < letters.size() ? "…\n" : "\n";
        const std::size_t rest = to > column ? to - column : 1;
        const std::size_t length =
            one.length == 0 ? rest : std::min<std::size_t>(one.length, std::max<std::size_t>(rest, 1));
        out_ += std::string(std::max<std::size_t>(number.size(), 5), ' ');
        paint(dim, " | ");
        out_ += below;
        paint(one.severity == kube::Severity::error ? red : yellow, std::string(length, '^'));
        out_ += '\n';
    }
    static std::string_view printable_letter(std::string_view letter) {
        return static_cast<unsigned char>(letter[0]) < 0x20 || letter[0] == 0x7F ? " " : letter;
    }

    HumanStyle style_;
    std::string out_;
};

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
    return std::to_string(count) + " " + std::string{count == 1 ? one : many};
}

}  // namespace

std::string summary_line(const Summary& summary) {
    std::string out =
        counted(summary.files, "file", "files") + ", " + counted(summary.judged, "document", "documents") + " judged";
    if (summary.skipped != 0) {
        out += ", " + std::to_string(summary.skipped) + " skipped";
    }
    if (summary.unreadable != 0) {
        out += ", " + std::to_string(summary.unreadable) + " unreadable";
    }
    return out + ": " + counted(summary.errors, "error", "errors") + ", " +
           counted(summary.warnings, "warning", "warnings");
}

std::string to_human(const Report& report, const HumanStyle& style) {
    Human human(style);
    // Skips stand where their file's findings stand.
    auto skipped = report.skipped.begin();
    const auto skips_of = [&](const std::string& file) {
        for (; skipped != report.skipped.end() && skipped->file == file; ++skipped) {
            human.skipped(*skipped);
        }
    };
    auto finding = report.findings.begin();
    for (const std::string& file : report.files) {
        for (; finding != report.findings.end() && finding->file == file; ++finding) {
            human.finding(*finding);
        }
        skips_of(file);
    }
    if (!style.quiet) {
        human.line(summary_line(report.summary));
    }
    return human.take();
}

}  // namespace ossa::validator
