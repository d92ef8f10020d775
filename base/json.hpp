// json: hostile bytes in, checked read-only values out; and text out again.
//
// A Document owns one parsed text and may be reused for the next one without giving its memory back. Values are small
// handles into the Document and live until its next parse or its end. Parsing does not recurse; what does (equal,
// append) is bounded by depth_max. Small texts are read by a quick reader over simdjson, large ones and those it does
// not take by RapidJSON; both fill the same tape (json_tape.hpp), so every reader sees one document and one verdict
// (docs/adr/0002). RFC 8259 with these choices: duplicate member names are refused, a leading byte order mark is
// skipped, numbers beyond double are refused, numbers beyond 64 bits become doubles, one string has at most 16 MiB.
// Thread: a Document belongs to one thread at a time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ossa::json {

struct Limits {
    std::size_t bytes_max = std::size_t{7} << 20;
    unsigned depth_max = 256;             // nested arrays and objects, the root counts as 1
    std::uint32_t values_max = 1U << 19;  // values and member names of one text
};

// What a parser may read behind the text: the quick reader wants 64 readable bytes. With them the strings of the
// Document stay in the text, which must then live as long; without them the text is copied first.
enum class Padding : bool { none, present };
inline constexpr std::size_t padding_bytes = 64;

enum class Type : std::uint8_t { absent, null, boolean, number, string, array, object };
std::string_view to_string(Type type) noexcept;

class Value;
class Members;
class Elements;

// A value, or the absence of one: at() of a missing member or of a non-object is the absent Value, so chains need no
// checks.
class Value {
  public:
    Value() = default;
    Value(const std::uint64_t* tape, const std::uint8_t* strings, std::uint32_t index)
        : tape_(tape), strings_(strings), index_(index) {}

    [[gnu::always_inline]] Type type() const noexcept {
        if (tape_ == nullptr) {
            return Type::absent;
        }
        switch (tag()) {
            case '{': return Type::object;
            case '[': return Type::array;
            case '"': return Type::string;
            case 'l':
            case 'u':
            case 'd': return Type::number;
            case 't':
            case 'f': return Type::boolean;
            default: return Type::null;
        }
    }
    explicit operator bool() const noexcept { return tape_ != nullptr; }
    [[gnu::always_inline]] bool exists() const noexcept { return tape_ != nullptr; }
    [[gnu::always_inline]] bool is_object() const noexcept { return tape_ != nullptr && tag() == '{'; }
    [[gnu::always_inline]] bool is_array() const noexcept { return tape_ != nullptr && tag() == '['; }
    [[gnu::always_inline]] bool is_string() const noexcept { return tape_ != nullptr && tag() == '"'; }
    [[gnu::always_inline]] bool is_null() const noexcept { return tape_ != nullptr && tag() == 'n'; }
    [[gnu::always_inline]] bool is_boolean() const noexcept {
        return tape_ != nullptr && (tag() == 't' || tag() == 'f');
    }
    [[gnu::always_inline]] bool is_number() const noexcept { return type() == Type::number; }
    // As JSON Schema has it: 30.0 and 3e1 are integers, whatever their size.
    bool is_integer() const noexcept;

    std::optional<std::string_view> as_string() const noexcept;
    std::optional<bool> as_bool() const noexcept;
    std::optional<std::int64_t> as_int64() const noexcept;  // whole and within range, 30.0 included
    std::optional<double> as_double() const noexcept;
    std::string_view string_or(std::string_view other) const noexcept { return as_string().value_or(other); }
    bool bool_or(bool other) const noexcept { return as_bool().value_or(other); }
    std::int64_t int64_or(std::int64_t other) const noexcept { return as_int64().value_or(other); }

    Value at(std::string_view name) const noexcept;  // member of an object
    template <std::size_t Size>
    Value at(const char (&name)[Size]) const noexcept;  // the same, of a name known when compiled
    Value at(std::size_t index) const noexcept;         // element of an array; linear in index
    Value pointer(std::string_view rfc6901) const;      // "" is the value itself
    std::size_t size() const noexcept;                  // members or elements; linear beyond 2^24
    bool empty() const noexcept { return size() == 0; }
    inline Members members() const noexcept;    // empty unless an object
    inline Elements elements() const noexcept;  // empty unless an array

    // For engines that walk the tape themselves (schema/plan.cpp).
    const std::uint64_t* tape() const noexcept { return tape_; }
    const std::uint8_t* strings() const noexcept { return strings_; }
    std::uint32_t index() const noexcept { return index_; }
    // The tape index behind this value.
    [[gnu::always_inline]] std::uint32_t next() const noexcept {
        switch (tag()) {
            case '{':
            case '[': return static_cast<std::uint32_t>(tape_[index_]);
            case 'l':
            case 'u':
            case 'd': return index_ + 2;
            default: return index_ + 1;
        }
    }
    [[gnu::always_inline]] std::string_view raw_string() const noexcept {  // requires is_string()
        const std::uint64_t word = tape_[index_];
        return {reinterpret_cast<const char*>(strings_) + static_cast<std::uint32_t>(word), (word >> 32U) & 0xFFFFFF};
    }
    [[gnu::always_inline]] char tag() const noexcept { return static_cast<char>(tape_[index_] >> 56U); }

  private:
    const std::uint64_t* tape_ = nullptr;
    const std::uint8_t* strings_ = nullptr;
    std::uint32_t index_ = 0;
};

struct Member {
    std::string_view name;
    Value value;
};

class Members {
  public:
    class Iterator {
      public:
        Iterator(Value name) : name_(name) {}
        [[gnu::always_inline]] Member operator*() const noexcept {
            return {name_.raw_string(), Value{name_.tape(), name_.strings(), name_.index() + 1}};
        }
        [[gnu::always_inline]] Iterator& operator++() noexcept {
            const Value value{name_.tape(), name_.strings(), name_.index() + 1};
            name_ = Value{name_.tape(), name_.strings(), value.next()};
            return *this;
        }
        [[gnu::always_inline]] bool operator!=(const Iterator& other) const noexcept {
            return name_.index() != other.name_.index();
        }

      private:
        Value name_;
    };
    Members(Value first, Value last) : first_(first), last_(last) {}
    Iterator begin() const noexcept { return Iterator{first_}; }
    Iterator end() const noexcept { return Iterator{last_}; }

  private:
    Value first_, last_;
};

class Elements {
  public:
    class Iterator {
      public:
        Iterator(Value value) : value_(value) {}
        [[gnu::always_inline]] Value operator*() const noexcept { return value_; }
        [[gnu::always_inline]] Iterator& operator++() noexcept {
            value_ = Value{value_.tape(), value_.strings(), value_.next()};
            return *this;
        }
        [[gnu::always_inline]] bool operator!=(const Iterator& other) const noexcept {
            return value_.index() != other.value_.index();
        }

      private:
        Value value_;
    };
    Elements(Value first, Value last) : first_(first), last_(last) {}
    Iterator begin() const noexcept { return Iterator{first_}; }
    Iterator end() const noexcept { return Iterator{last_}; }

  private:
    Value first_, last_;
};

[[gnu::always_inline]] inline Members Value::members() const noexcept {
    if (!is_object()) {
        return {Value{}, Value{}};
    }
    return {Value{tape_, strings_, index_ + 1}, Value{tape_, strings_, next() - 1}};
}

[[gnu::always_inline]] inline Elements Value::elements() const noexcept {
    if (!is_array()) {
        return {Value{}, Value{}};
    }
    return {Value{tape_, strings_, index_ + 1}, Value{tape_, strings_, next() - 1}};
}

template <std::size_t Size>
Value Value::at(const char (&name)[Size]) const noexcept {
    for (const Member member : members()) {
        if (member.name.size() == Size - 1 && std::memcmp(member.name.data(), name, Size - 1) == 0) {
            return member.value;
        }
    }
    return {};
}

class Document {
  public:
    Document();
    ~Document();
    Document(Document&&) noexcept;
    Document& operator=(Document&&) noexcept;

    // Errors: invalid (not JSON, duplicate names, too deep, too many values; the message has the byte offset or the
    // pointer), too_large (bytes_max). After an error root() is absent.
    Result<void> parse(std::string_view text, const Limits& limits, Padding padding = Padding::none);
    Value root() const noexcept { return root_; }
    // Nesting of the deepest value; 0 for a lone scalar.
    unsigned depth() const noexcept { return depth_; }

    static Result<Document> from(std::string_view text, const Limits& limits = {});

  private:
    friend class Builder;
    struct State;
    Result<void> accept(Value root, const Limits& limits);
    std::unique_ptr<State> state_;
    Value root_;
    unsigned depth_ = 0;
};

// The string at a path of member names, read without building anything: for texts that no Document may hold (too deep,
// too large). The text is read only as far as needed and may be broken behind that. The first of repeated names counts.
std::optional<std::string> find_string(std::string_view text, std::initializer_list<std::string_view> path);

// Builds a Document event by event, for texts in other notations (YAML). Events must nest properly; the last open
// container must be closed before finish(). finish() applies the same checks as Document::parse.
class Builder {
  public:
    Builder();
    ~Builder();
    void null();
    void boolean(bool value);
    void integer(std::int64_t value);
    void unsigned_integer(std::uint64_t value);
    void number(double value);  // must be finite
    void string(std::string_view value);
    void begin_object();
    void name(std::string_view value);
    void end_object();
    void begin_array();
    void end_array();
    std::size_t values() const noexcept;  // values and names so far
    Result<Document> finish(const Limits& limits);

  private:
    void begin(char tag);
    void end(char tag);
    std::unique_ptr<Document> document_;
};

// A name's first and last eight bytes and its size, so that names are told apart without a call: keys of at most 16
// bytes are equal only if the names are. Names below eight bytes have no `last`.
struct NameKey {
    std::uint64_t first = 0, last = 0;
    std::size_t size = 0;

    // A string of a Document: eight bytes from its start may be read, whatever its size.
    [[gnu::always_inline]] static NameKey of(std::string_view name) noexcept {
        NameKey key{0, 0, name.size()};
        std::memcpy(&key.first, name.data(), 8);
        if (name.size() >= 8) {
            std::memcpy(&key.last, name.data() + name.size() - 8, 8);
        } else {
            key.first &= (std::uint64_t{1} << (8 * name.size())) - 1;
        }
        return key;
    }
    static constexpr NameKey of_literal(std::string_view name) noexcept {
        NameKey key{0, 0, name.size()};
        for (std::size_t i = 0; i < 8 && i < name.size(); ++i) {
            key.first |= std::uint64_t{static_cast<unsigned char>(name[i])} << (8 * i);
            key.last |=
                name.size() < 8 ? 0 : std::uint64_t{static_cast<unsigned char>(name[name.size() - 8 + i])} << (8 * i);
        }
        return key;
    }
    constexpr bool operator==(const NameKey&) const noexcept = default;
    constexpr bool decides() const noexcept { return size <= 16; }
    constexpr std::uint64_t hash() const noexcept {
        return ((first ^ (last >> 7U) ^ (last << 21U)) + size) *
               0x9E3779B97F4A7C15ULL;  // the upper bits are the good ones
    }
};
static_assert(std::endian::native == std::endian::little, "of_literal and of() must agree");

// The named members of an object, found in one walk. Absent ones, and all of a non-object, are the absent Value:
// const auto [image, type] = pick(runtime, "image", "type");
template <std::size_t... Sizes>
std::array<Value, sizeof...(Sizes)> pick(Value object, const char (&... names)[Sizes]) noexcept {
    static_assert(((Sizes <= 64) && ...));
    // Bit n: some wanted name has n characters. Most members are passed over by that alone.
    constexpr std::uint64_t lengths = ((std::uint64_t{1} << (Sizes - 1)) | ...);
    std::array<Value, sizeof...(Sizes)> out;
    std::size_t left = sizeof...(Sizes);
    for (const Member member : object.members()) {
        const std::string_view name = member.name;
        if (name.size() >= 64 || ((lengths >> name.size()) & 1U) == 0) {
            continue;
        }
        std::size_t at = 0;
        const auto is = [&](const char* wanted, std::size_t length) __attribute__((always_inline)) {
            if (name.size() == length && std::memcmp(name.data(), wanted, length) == 0) {
                out[at] = member.value;
                --left;
                return true;
            }
            ++at;
            return false;
        };
        static_cast<void>((is(names, Sizes - 1) || ...));
        if (left == 0) {
            break;
        }
    }
    return out;
}

// Equal as JSON values: 1 equals 1.0, member order does not matter.
bool equal(Value a, Value b);

// Compact text. Integers are printed as integers, doubles in their shortest form that reads back equal.
void append(std::string& out, Value value);
std::string to_text(Value value);
// At most `bytes_max` bytes of to_text, cut at a character boundary with "…" behind it: for messages.
std::string excerpt(Value value, std::size_t bytes_max = 80);
// "text" with quotes and escapes. Text must be UTF-8.
void append_quoted(std::string& out, std::string_view text);
std::string quoted(std::string_view text);
// A copy of the string that the value is; "" when it is none.
std::string text_of(Value value);
// RFC 7386: the target with the patch merged into it, as text. Members keep the target's order, new ones follow.
std::string merge_patch(Value target, Value patch);
// RFC 6901: "~" -> "~0", "/" -> "~1".
void append_pointer_token(std::string& out, std::string_view token);

}  // namespace ossa::json
