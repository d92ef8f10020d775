// yaml: a stream of YAML or JSON documents, read as kubectl reads it, with the place of every value.
//
// kubectl splits a stream at lines that begin with "---" (k8s.io/apimachinery util/yaml), turns each part into JSON
// with sigs.k8s.io/yaml (go-yaml v2: YAML 1.1 words and numbers, merge keys, keys turned into strings) and takes only
// the first document of a part. The same is done here; tests/data/yaml-oracle holds the answers of that library. The
// scanner is libyaml, the library go-yaml v2 was ported from; plain block documents take a quicker way to the same tree
// (yaml_quick.cpp). What is not done as there: a repeated key is remarked (the last one counts, as with kubectl), and
// infinite numbers are remarked and read as null (kubectl stops at them). Nothing recurses deeper than
// Limits::depth_max. Thread: a Document belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace ossa::yaml {

struct Limits {
    std::size_t bytes_max = std::size_t{7} << 20;  // of one document, aliases written out
    unsigned depth_max = 250;                      // nested mappings and sequences, the root counts as 1
    std::uint32_t values_max = 1U << 20;           // values and names of one document, aliases written out
};

// Lines and columns count from 1, columns in code points; length 0 is "to the end of the line". Line 0: nowhere.
struct Place {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t length = 0;
    bool known() const noexcept { return line != 0; }
};

// Why a part cannot be read at all. The rule is one of the yaml/ ids of rules().
struct Problem {
    std::string rule;
    Place place;
    std::string message;
    std::string hint;
};

enum class RemarkKind : std::uint8_t {
    duplicate_key,    // the later one; other is the earlier
    not_finite,       // .inf or .nan, read as null
    ignored_rest,     // a further document in the same part, which kubectl never looks at
    boolean_key,      // an unquoted y, n, on … as a key, which becomes "true" or "false"
    boolean_word,     // an unquoted yes, no, on … as a value: a boolean here, a string in YAML 1.2
    odd_number,       // 010, 1_000, 0b1 …: a number here, and another or a string in YAML 1.2
    merge_overrides,  // a merge key behind a key that it changes
};

// Something that the reader noticed and the value no longer shows.
struct Remark {
    RemarkKind kind;
    Place place;
    Place other;
    std::string pointer;  // RFC 6901
    std::string text;     // the key or value as written
    std::string became;   // as JSON
};

enum class Notation : std::uint8_t { yaml, json };

// One document's worth of a stream.
struct Part {
    std::string_view text;  // without the separator line
    std::uint32_t first_line = 1;
    Notation notation = Notation::yaml;
    std::optional<Problem> problem;  // the part cannot be split off properly: a "--- text" line
};

// Cuts a stream into parts. Parts without content are handed out too; Document::read finds them empty.
class Splitter {
  public:
    explicit Splitter(std::string_view stream);
    std::optional<Part> next();

  private:
    std::string_view stream_;
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
    bool json_possible_ = true;
    std::optional<Problem> json_problem_;
};

enum class Style : std::uint8_t { none, plain, quoted, block };

// What stands at a pointer.
struct Spot {
    Place key;  // of the member's name; nowhere for elements and the root
    Place value;
    Style style = Style::none;  // none: a mapping or sequence
    std::string_view text;      // a scalar's text, quotes and escapes undone
    bool tagged = false;
    bool empty() const noexcept { return style == Style::plain && text.empty(); }
};

enum class ReadAs : std::uint8_t { quick_if_possible, libyaml };  // libyaml: for tests that compare the two

class Document {
  public:
    Document();
    ~Document();
    Document(Document&&) noexcept;
    Document& operator=(Document&&) noexcept;

    // nullopt: read; root() is absent if the part is empty, holds only comments or only null, which kubectl passes
    // over. The part's text must outlive the use of find() and remarks().
    std::optional<Problem> read(const Part& part, const Limits& limits, ReadAs how = ReadAs::quick_if_possible);

    json::Value root() const noexcept { return has_value_ ? value_.root() : json::Value{}; }
    const std::vector<Remark>& remarks() const noexcept { return remarks_; }
    // Where the value at an RFC 6901 pointer stands; nullopt if there is none.
    std::optional<Spot> find(std::string_view pointer);

    struct Tree;

  private:
    std::unique_ptr<Tree> tree_;
    json::Document value_;
    bool has_value_ = false;
    std::vector<Remark> remarks_;
};

// What kubectl makes of an unquoted, untagged scalar.
struct Scalar {
    enum class Kind : std::uint8_t { string, null, boolean, integer, unsigned_integer, number, not_finite };
    Kind kind = Kind::string;
    bool boolean = false;
    std::int64_t integer = 0;
    std::uint64_t unsigned_integer = 0;
    double number = 0;
};
Scalar resolve(std::string_view plain) noexcept;

}  // namespace ossa::yaml
