#include "base/json.hpp"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/bug.hpp"
#include "base/json_quick.hpp"
#include "base/json_tape.hpp"

namespace ossa::json {

namespace {

// Texts above this go through RapidJSON: the quick reader keeps up to 14 times the text as work space, and a thread
// that has once read a large text would keep it.
constexpr std::size_t quick_bytes_max = std::size_t{256} << 10;

std::string at_byte(std::size_t offset) {
    return " at byte " + std::to_string(offset);
}

// RapidJSON reads the escape of a lone second half, \\udc00, and writes it as bytes that are no UTF-8.
bool has_half_character(std::string_view text) {
    for (std::size_t at = text.find('\xED'); at != std::string_view::npos; at = text.find('\xED', at + 1)) {
        if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0) {
            return true;
        }
    }
    return false;
}

// A JSON number with a fraction or an exponent; end 0: there is none.
struct RealNumber {
    std::size_t end = 0;
    bool has_exponent = false;
    bool is_zero = true;
};
RealNumber real_number_at(std::string_view text, std::size_t at) {
    RealNumber out;
    const auto digits = [&](bool significant) {
        const std::size_t from = at;
        for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
            out.is_zero = out.is_zero && (!significant || text[at] == '0');
        }
        return at - from;
    };
    at += text[at] == '-' ? 1 : 0;
    const bool zero = at < text.size() && text[at] == '0';
    const std::size_t whole = digits(true);
    if (whole == 0 || (zero && whole > 1)) {
        return {};
    }
    const bool fraction = at < text.size() && text[at] == '.';
    if (fraction) {
        ++at;
        if (digits(true) == 0) {
            return {};
        }
    }
    out.has_exponent = at < text.size() && (text[at] == 'e' || text[at] == 'E');
    if (out.has_exponent) {
        ++at;
        at += at < text.size() && (text[at] == '+' || text[at] == '-') ? 1 : 0;
        if (digits(false) == 0) {
            return {};
        }
    }
    out.end = fraction || out.has_exponent ? at : 0;
    return out;
}

// Calls take(start, number) for the real numbers of a text, outside of its strings; false from it ends the walk.
template <class Take>
void for_each_real(std::string_view text, Take take) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"') {
            for (++i; i < text.size() && text[i] != '"'; ++i) {
                i += text[i] == '\\' ? 1 : 0;
            }
        } else if (text[i] == '-' || (text[i] >= '0' && text[i] <= '9')) {
            const RealNumber number = real_number_at(text, i);
            if (number.end != 0 && !take(i, number)) {
                return;
            }
            // Behind the whole number: its digits must not be taken for another one.
            i = std::min(text.find_first_not_of("+-.eE0123456789", i), text.size()) - 1;
        }
    }
}

// RapidJSON makes something else of a zero with many digits or a large exponent, by shifting it until its highest bit
// stands in front.
bool has_long_zero(std::string_view text) {
    bool found = false;
    for_each_real(text, [&](std::size_t start, const RealNumber& number) {
        found = number.is_zero && number.end - start > 3;
        return !found;
    });
    return found;
}

// RapidJSON takes some numbers for too big that are not: 0e308, 0e400, or 400 digits and then e-390. This is the same
// text, as long as before, with such numbers and zeros written short.
std::string with_short_numbers(std::string_view text) {
    std::string out{text};
    for_each_real(text, [&](std::size_t start, const RealNumber& number) {
        double value = 0;
        std::array<char, 32> shorter{};
        if ((number.has_exponent || number.is_zero) &&
            (number.is_zero ||
             std::from_chars(text.data() + start, text.data() + number.end, value).ec == std::errc{})) {
            value = number.is_zero && text[start] == '-' ? -0.0 : value;
            const auto written = number.is_zero ? std::to_chars(shorter.data(), shorter.data() + shorter.size(), value,
                                                                std::chars_format::fixed, 1)
                                                : std::to_chars(shorter.data(), shorter.data() + shorter.size(), value,
                                                                std::chars_format::scientific);
            const auto length = static_cast<std::size_t>(written.ptr - shorter.data());
            if (length <= number.end - start) {
                std::fill(std::copy(shorter.data(), written.ptr, out.begin() + static_cast<std::ptrdiff_t>(start)),
                          out.begin() + static_cast<std::ptrdiff_t>(number.end), ' ');
            }
        }
        return true;
    });
    return out;
}

// Writes simdjson's tape from events.
class TapeWriter {
  public:
    explicit TapeWriter(const Limits& limits) : limits_(limits) { start(); }

    void start() {
        tape_.clear();
        strings_.clear();
        open_.clear();
        values_ = 0;
        refusal_ = "stopped";
        tape_.push_back(tape_word('r'));
    }

    // Rapidjson's handler interface: false stops the reader; refusal() then says why.
    bool Null() { return scalar(tape_word('n')); }
    bool Bool(bool b) { return scalar(tape_word(b ? 't' : 'f')); }
    bool Int(int i) { return Int64(i); }
    bool Uint(unsigned u) { return Int64(u); }
    bool Int64(std::int64_t i) { return number('l', static_cast<std::uint64_t>(i)); }
    bool Uint64(std::uint64_t u) {
        const bool fits = u <= static_cast<std::uint64_t>(INT64_MAX);
        return number(fits ? 'l' : 'u', u);
    }
    bool Double(double d) {
        if (!std::isfinite(d)) {  // the reader's own check lets 1.8e308 pass, and makes 0e308 no number
            refusal_ = too_big;
            return false;
        }
        std::uint64_t bits = 0;
        std::memcpy(&bits, &d, sizeof bits);
        return number('d', bits);
    }
    bool RawNumber(const char*, unsigned, bool) { return false; }
    bool String(const char* text, unsigned length, bool) {
        if (has_half_character({text, length})) {
            refusal_ = "The surrogate pair in string is invalid.";
            return false;
        }
        return string({text, length});
    }
    bool Key(const char* text, unsigned length, bool copy) { return String(text, length, copy); }
    bool StartObject() { return open('{'); }
    bool EndObject(std::uint64_t members = 0) { return close('}', members); }
    bool StartArray() { return open('['); }
    bool EndArray(std::uint64_t elements = 0) { return close(']', elements); }

    bool string(std::string_view text) {
        const std::size_t offset = strings_.size();
        if (text.size() > string_bytes_max || offset > UINT32_MAX - string_bytes_max) {
            refusal_ = "a string is too long";
            return false;
        }
        strings_.insert(strings_.end(), text.begin(), text.end());
        return scalar(tape_string(text.size(), offset));
    }

    // The closing words and the bytes that readers may touch behind the last string.
    void finish() {
        tape_.push_back(tape_word('r'));
        tape_[0] = tape_word('r', tape_.size());
        strings_.resize(strings_.size() + padding_bytes);
    }

    // Takes over a finished tape, its end included, in no more memory than it needs.
    void copy(const std::uint64_t* tape, const std::uint8_t* strings) {
        const auto words = static_cast<std::uint32_t>(tape[0]);
        tape_.assign(tape, tape + words);
        strings_.clear();
        for (std::size_t i = 1; i < words; ++i) {
            const char tag = tape_tag(tape[i]);
            if (tag == '"') {
                const std::uint8_t* const from = strings + static_cast<std::uint32_t>(tape[i]);
                const std::size_t size = tape[i] >> 32U & string_bytes_max;
                tape_[i] = tape_string(size, strings_.size());
                strings_.insert(strings_.end(), from, from + size);
            }
            i += tag == 'l' || tag == 'u' || tag == 'd' ? 1 : 0;
        }
        strings_.resize(strings_.size() + padding_bytes);
        strings_.shrink_to_fit();
    }

    const char* refusal() const { return refusal_; }
    bool has_refused_a_number() const { return refusal_ == too_big; }
    std::size_t values() const { return values_; }
    bool nested() const { return !open_.empty(); }
    const std::uint64_t* tape() const { return tape_.data(); }
    const std::uint8_t* strings() const { return strings_.data(); }

  private:
    bool count() {
        if (++values_ > limits_.values_max) {
            refusal_ = "too many values";
            return false;
        }
        return true;
    }
    bool scalar(std::uint64_t w) {
        tape_.push_back(w);
        return count();
    }
    bool number(char tag, std::uint64_t bits) {
        tape_.push_back(tape_word(tag));
        tape_.push_back(bits);
        return count();
    }
    bool open(char tag) {
        if (open_.size() >= limits_.depth_max) {
            refusal_ = "nested too deeply";
            return false;
        }
        open_.push_back(static_cast<std::uint32_t>(tape_.size()));
        tape_.push_back(tape_word(tag));
        return count();
    }
    bool close(char tag, std::uint64_t children) {
        const std::uint32_t start = open_.back();
        open_.pop_back();
        tape_.push_back(tape_word(tag, start));
        const std::uint64_t shown = std::min(children, many_children);
        tape_[start] = tape_word(tag == '}' ? '{' : '[', (shown << 32U) | tape_.size());
        return true;
    }

    static constexpr const char* too_big = "Number too big to be stored in double.";
    Limits limits_;
    std::vector<std::uint64_t> tape_;
    std::vector<std::uint8_t> strings_;
    std::vector<std::uint32_t> open_;
    std::size_t values_ = 0;
    const char* refusal_ = "stopped";
};

// The pointer of the value at a tape index: walked only when something is wrong.
std::string pointer_of(Value root, std::uint32_t index) {
    std::string out;
    Value at = root;
    while (at.index() != index) {
        bool descended = false;
        std::size_t position = 0;
        if (at.is_object()) {
            for (const Member member : at.members()) {
                if (index >= member.value.index() && index < member.value.next()) {
                    out.push_back('/');
                    append_pointer_token(out, member.name);
                    at = member.value;
                    descended = true;
                    break;
                }
            }
        } else if (at.is_array()) {
            for (const Value element : at.elements()) {
                if (index >= element.index() && index < element.next()) {
                    out.append("/").append(std::to_string(position));
                    at = element;
                    descended = true;
                    break;
                }
                ++position;
            }
        }
        if (!descended) {
            break;
        }
    }
    return out;
}

// One pass over a tape for what both readers' documents must keep: depth, number of values, no repeated names. The pass
// itself only says what is wrong and where, so that its few variables stay in registers; the words are made outside of
// it.
class Checker {
  public:
    Result<void> check(Value root, const Limits& limits) {
        const Flaw flaw = pass(root, limits.depth_max);
        if (flaw.kind == Flaw::repeated) {
            std::string message = "duplicate member name ";
            append_quoted(message, text_of(root, flaw.at));
            const std::string pointer = pointer_of(root, flaw.at + 1);
            message.append(" in ").append(pointer.substr(0, pointer.rfind('/') + 1));
            return failure(ErrorCode::invalid, std::move(message));
        }
        if (flaw.kind == Flaw::depth) {
            return failure(ErrorCode::invalid,
                           "nested too deeply: more than " + std::to_string(limits.depth_max) + " levels");
        }
        if (values_ > limits.values_max) {
            return failure(ErrorCode::invalid, "too many values: more than " + std::to_string(limits.values_max));
        }
        return {};
    }

    unsigned deepest() const { return deepest_; }

  private:
    // Up to here each name is compared with those before it; beyond, an object's names are sorted when it ends.
    static constexpr std::size_t pairwise_max = 24;

    struct Flaw {
        enum Kind : std::uint8_t { none, repeated, depth } kind = none;
        std::uint32_t at = 0;  // the name on the tape
    };
    struct Name {
        std::uint64_t hash;
        std::uint32_t at;
    };
    // An open object or array.
    struct Scope {
        std::uint64_t seen = 0;   // a bit for each hash of its names
        std::uint32_t first = 0;  // of its names
        bool is_object = false;
    };

    static std::string_view text_of(Value root, std::uint32_t at) {
        return Value{root.tape(), root.strings(), at}.raw_string();
    }

    Flaw pass(Value root, std::size_t depth_max) {
        const std::uint64_t* const tape = root.tape();
        const auto end = static_cast<std::uint32_t>(tape[0]) - 1;
        Scope scope;
        std::size_t depth = 0;
        std::uint32_t used = 0;    // of names_
        std::uint32_t others = 0;  // words that are no value: ends, and the second words of numbers
        deepest_ = 0;
        for (std::uint32_t i = 1; i < end; ++i) {
            char tag = tape_tag(tape[i]);
            if (scope.is_object && tag == '"') {
                const std::uint64_t hash = NameKey::of(text_of(root, i)).hash();
                const std::uint64_t bit = std::uint64_t{1} << (hash >> 58U);
                // While its bit is new, so is the name.
                if ((scope.seen & bit) != 0 && stands_before(root, {hash, i}, scope.first, used)) [[unlikely]] {
                    return {Flaw::repeated, i};
                }
                scope.seen |= bit;
                if (used == names_.size()) [[unlikely]] {
                    grow(names_);
                }
                names_[used++] = {hash, i};
                tag = tape_tag(tape[++i]);
            }
            if (tag == '"') {
                continue;
            }
            if (tag == '{' || tag == '[') {
                if (depth == scopes_.size()) [[unlikely]] {
                    grow(scopes_);
                }
                scopes_[depth++] = scope;
                scope = {0, used, tag == '{'};
                deepest_ = std::max(deepest_, static_cast<unsigned>(depth));
                if (depth > depth_max) [[unlikely]] {
                    return {Flaw::depth, i};
                }
            } else if (tag == '}' || tag == ']') {
                if (used - scope.first > pairwise_max) [[unlikely]] {
                    const std::uint32_t repeated = repeated_of_many(root, scope.first, used);
                    if (repeated != 0) {
                        return {Flaw::repeated, repeated};
                    }
                }
                used = scope.first;
                scope = scopes_[--depth];
                ++others;
            } else if (tag == 'l' || tag == 'd' || tag == 'u') {
                ++i;
                ++others;
            }
        }
        values_ = end - 1 - others;
        return {};
    }

    template <class T>
    [[gnu::noinline]] static void grow(std::vector<T>& space) {
        space.resize(std::max<std::size_t>(64, 2 * space.size()));
    }

    [[gnu::noinline]] bool stands_before(Value root, Name name, std::uint32_t first, std::uint32_t used) const {
        if (used - first >= pairwise_max) {
            return false;
        }
        const auto from = names_.begin() + static_cast<std::ptrdiff_t>(first);
        return std::any_of(from, from + static_cast<std::ptrdiff_t>(used - first), [&](const Name& before) {
            return before.hash == name.hash && text_of(root, before.at) == text_of(root, name.at);
        });
    }

    // Where a repeated name stands, 0 when there is none.
    [[gnu::noinline]] std::uint32_t repeated_of_many(Value root, std::uint32_t first, std::uint32_t used) {
        const auto begin = names_.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end = names_.begin() + static_cast<std::ptrdiff_t>(used);
        std::sort(begin, end, [&](const Name& a, const Name& b) {
            return a.hash != b.hash ? a.hash < b.hash : text_of(root, a.at) < text_of(root, b.at);
        });
        const auto same = std::adjacent_find(begin, end, [&](const Name& a, const Name& b) {
            return a.hash == b.hash && text_of(root, a.at) == text_of(root, b.at);
        });
        return same == end ? 0 : same->at;
    }

    std::vector<Name> names_;  // work space, kept from one text to the next
    std::vector<Scope> scopes_;
    std::size_t values_ = 0;
    unsigned deepest_ = 0;
};

std::string shortest(double d) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), d);
    return {text.data(), end.ptr};
}

}  // namespace

std::string_view to_string(Type type) noexcept {
    switch (type) {
        case Type::absent: return "nothing";
        case Type::null: return "null";
        case Type::boolean: return "boolean";
        case Type::number: return "number";
        case Type::string: return "string";
        case Type::array: return "array";
        case Type::object: return "object";
    }
    return "nothing";
}

bool Value::is_integer() const noexcept {
    if (tape_ == nullptr) {
        return false;
    }
    switch (tag()) {
        case 'l':
        case 'u': return true;
        case 'd': {
            const double d = *as_double();
            return std::trunc(d) == d;
        }
        default: return false;
    }
}

std::optional<std::string_view> Value::as_string() const noexcept {
    return is_string() ? std::optional{raw_string()} : std::nullopt;
}

std::optional<bool> Value::as_bool() const noexcept {
    return is_boolean() ? std::optional{tag() == 't'} : std::nullopt;
}

std::optional<std::int64_t> Value::as_int64() const noexcept {
    if (tape_ == nullptr) {
        return std::nullopt;
    }
    if (tag() == 'l') {
        return static_cast<std::int64_t>(tape_[index_ + 1]);
    }
    if (tag() == 'd') {
        const double d = *as_double();
        if (std::trunc(d) == d && d >= -0x1p63 && d < 0x1p63) {
            return static_cast<std::int64_t>(d);
        }
    }
    return std::nullopt;
}

std::optional<double> Value::as_double() const noexcept {
    if (tape_ == nullptr) {
        return std::nullopt;
    }
    switch (tag()) {
        case 'l': return static_cast<double>(static_cast<std::int64_t>(tape_[index_ + 1]));
        case 'u': return static_cast<double>(tape_[index_ + 1]);
        case 'd': {
            double d = 0;
            std::memcpy(&d, &tape_[index_ + 1], sizeof d);
            return d;
        }
        default: return std::nullopt;
    }
}

Value Value::at(std::string_view name) const noexcept {
    for (const Member member : members()) {
        if (member.name == name) {
            return member.value;
        }
    }
    return {};
}

Value Value::at(std::size_t index) const noexcept {
    for (const Value element : elements()) {
        if (index-- == 0) {
            return element;
        }
    }
    return {};
}

Value Value::pointer(std::string_view rfc6901) const {
    Value at = *this;
    while (!rfc6901.empty() && at.exists()) {
        if (rfc6901.front() != '/') {
            return {};
        }
        rfc6901.remove_prefix(1);
        const std::size_t end = std::min(rfc6901.find('/'), rfc6901.size());
        std::string token;
        for (std::size_t i = 0; i < end; ++i) {
            if (rfc6901[i] == '~' && i + 1 < end) {
                token.push_back(rfc6901[++i] == '1' ? '/' : '~');
            } else {
                token.push_back(rfc6901[i]);
            }
        }
        if (at.is_array()) {
            std::size_t index = 0;
            const auto parsed = std::from_chars(token.data(), token.data() + token.size(), index);
            const bool number = parsed.ec == std::errc{} && parsed.ptr == token.data() + token.size();
            at = number ? at.at(index) : Value{};
        } else {
            at = at.at(std::string_view{token});
        }
        rfc6901.remove_prefix(end);
    }
    return at;
}

std::size_t Value::size() const noexcept {
    if (!is_object() && !is_array()) {
        return 0;
    }
    const std::uint64_t shown = (tape_[index_] >> 32U) & many_children;
    if (shown < many_children) {
        return shown;
    }
    std::size_t counted = 0;
    if (is_object()) {
        for ([[maybe_unused]] const Member member : members()) {
            ++counted;
        }
    } else {
        for ([[maybe_unused]] const Value element : elements()) {
            ++counted;
        }
    }
    return counted;
}

struct Document::State {
    QuickReader quick;
    std::string padded;  // a text that came without padding
    Checker checker;
    std::unique_ptr<TapeWriter> writer;  // for large texts, refused ones and the Builder
};

Document::Document() : state_(std::make_unique<State>()) {}
Document::~Document() = default;
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;

Result<void> Document::parse(std::string_view text, const Limits& limits, Padding padding) {
    root_ = {};
    state_->writer.reset();
    if (text.size() > limits.bytes_max) {
        return failure(ErrorCode::too_large, "more than " + std::to_string(limits.bytes_max) + " bytes");
    }
    std::size_t offset = 0;
    if (text.starts_with("\xEF\xBB\xBF")) {
        offset = 3;
        text.remove_prefix(offset);
    }
    if (text.size() <= quick_bytes_max) {
        std::string_view readable = text;
        if (padding == Padding::none) {
            state_->padded.assign(text).append(padding_bytes, ' ');
            readable = std::string_view{state_->padded}.substr(0, text.size());
        }
        if (state_->quick.read(readable, limits)) {
            root_ = Value{state_->quick.tape(), state_->quick.strings(), 1};
            depth_ = state_->quick.deepest();
            return {};
        }
    }
    // Large, refused, or out of the ordinary: RapidJSON has the last word and the better message.
    state_->writer = std::make_unique<TapeWriter>(limits);
    TapeWriter& writer = *state_->writer;
    constexpr unsigned flags =
        rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag | rapidjson::kParseFullPrecisionFlag;
    std::string rewritten;
    if (has_long_zero(text)) {
        rewritten = with_short_numbers(text);
        text = rewritten;
    }
    rapidjson::MemoryStream stream(text.data(), text.size());
    rapidjson::Reader reader;
    rapidjson::ParseResult parsed = reader.Parse<flags>(stream, writer);
    if (parsed.Code() == rapidjson::kParseErrorNumberTooBig || (parsed.IsError() && writer.has_refused_a_number())) {
        rewritten = with_short_numbers(text);
        stream = rapidjson::MemoryStream(rewritten.data(), rewritten.size());
        writer.start();
        parsed = reader.Parse<flags>(stream, writer);
    }
    if (parsed.IsError()) {
        const std::string what = parsed.Code() == rapidjson::kParseErrorTermination
                                     ? writer.refusal()
                                     : rapidjson::GetParseError_En(parsed.Code());
        state_->writer.reset();
        return failure(ErrorCode::invalid, what + at_byte(parsed.Offset() + offset));
    }
    if (stream.Tell() != text.size()) {  // RapidJSON takes a NUL for the end
        const std::size_t end = stream.Tell() + offset;
        state_->writer.reset();
        return failure(ErrorCode::invalid, "unexpected byte behind the document" + at_byte(end));
    }
    writer.finish();
    const Value root{writer.tape(), writer.strings(), 1};
    return accept(root, limits);
}

Result<void> Document::accept(Value root, const Limits& limits) {
    OSSA_CHECK(state_->checker.check(root, limits));
    depth_ = state_->checker.deepest();
    root_ = root;
    return {};
}

Result<Document> Document::from(std::string_view text, const Limits& limits) {
    Document document;
    OSSA_CHECK(document.parse(text, limits));
    // Kept rather than reused: without simdjson's work space, which is many times the text.
    auto compact = std::make_unique<TapeWriter>(limits);
    compact->copy(document.root_.tape(), document.root_.strings());
    document.state_ = std::make_unique<State>();
    document.root_ = Value{compact->tape(), compact->strings(), 1};
    document.state_->writer = std::move(compact);
    return document;
}

namespace {
Limits no_limits() {
    return {.bytes_max = SIZE_MAX, .depth_max = UINT32_MAX, .values_max = UINT32_MAX};
}
}  // namespace

Builder::Builder() : document_(std::make_unique<Document>()) {
    document_->state_->writer = std::make_unique<TapeWriter>(no_limits());
}
Builder::~Builder() = default;
void Builder::null() {
    document_->state_->writer->Null();
}
void Builder::boolean(bool value) {
    document_->state_->writer->Bool(value);
}
void Builder::integer(std::int64_t value) {
    document_->state_->writer->Int64(value);
}
void Builder::unsigned_integer(std::uint64_t value) {
    document_->state_->writer->Uint64(value);
}
void Builder::number(double value) {
    OSSA_BUG_IF(!std::isfinite(value), "JSON has no infinite numbers");
    document_->state_->writer->Double(value);
}
void Builder::string(std::string_view value) {
    document_->state_->writer->string(value);
}
void Builder::begin_object() {
    begin('{');
}
void Builder::name(std::string_view value) {
    document_->state_->writer->string(value);
}
void Builder::end_object() {
    end('}');
}
void Builder::begin_array() {
    begin('[');
}
void Builder::end_array() {
    end(']');
}
std::size_t Builder::values() const noexcept {
    return document_->state_->writer->values();
}

void Builder::begin(char tag) {
    if (tag == '{') {
        document_->state_->writer->StartObject();
    } else {
        document_->state_->writer->StartArray();
    }
}

void Builder::end(char tag) {
    OSSA_BUG_IF(!document_->state_->writer->nested(), "nothing is open");
    // The number of children is not counted here: "many" makes size() count them.
    if (tag == '}') {
        document_->state_->writer->EndObject(many_children);
    } else {
        document_->state_->writer->EndArray(many_children);
    }
}

Result<Document> Builder::finish(const Limits& limits) {
    TapeWriter& writer = *document_->state_->writer;
    OSSA_BUG_IF(writer.nested() || writer.values() == 0, "finish() needs one complete value");
    writer.finish();
    const Value root{writer.tape(), writer.strings(), 1};
    OSSA_CHECK(document_->accept(root, limits));
    return std::move(*document_);
}

namespace {

constexpr std::size_t find_depth_max = 300;

// Follows one path of names through the events of a text and stops at its end.
class PathFinder {
  public:
    explicit PathFinder(std::initializer_list<std::string_view> path) : path_(path) {}

    bool Null() { return scalar(); }
    bool Bool(bool) { return scalar(); }
    bool Int(int) { return scalar(); }
    bool Uint(unsigned) { return scalar(); }
    bool Int64(std::int64_t) { return scalar(); }
    bool Uint64(std::uint64_t) { return scalar(); }
    bool Double(double) { return scalar(); }
    bool RawNumber(const char*, unsigned, bool) { return scalar(); }
    bool String(const char* text, unsigned length, bool) {
        if (on_path_ && matched_ == path_.size()) {
            if (!has_half_character({text, length})) {
                found_ = std::string(text, length);
            }
            return false;
        }
        return scalar();
    }
    bool StartObject() { return open(); }
    bool Key(const char* text, unsigned length, bool) {
        on_path_ = depth_ == matched_ + 1 && matched_ < path_.size() &&
                   *(path_.begin() + matched_) == std::string_view(text, length);
        matched_ += on_path_ ? 1 : 0;
        return true;
    }
    bool EndObject(unsigned) { return close(); }
    bool StartArray() { return open(); }
    bool EndArray(unsigned) { return close(); }
    std::optional<std::string> found() && { return std::move(found_); }

  private:
    bool scalar() { return !std::exchange(on_path_, false) || depth_ == 0; }  // the path ends at something else
    bool open() {
        const bool entered = std::exchange(on_path_, false);
        ++depth_;
        return (!entered || matched_ < path_.size()) && depth_ < find_depth_max;
    }
    bool close() { return --depth_ > matched_ || matched_ == 0; }  // the object on the path had no such member

    std::initializer_list<std::string_view> path_;
    std::size_t matched_ = 0;
    std::size_t depth_ = 0;
    bool on_path_ = false;
    std::optional<std::string> found_;
};

}  // namespace

std::optional<std::string> find_string(std::string_view text, std::initializer_list<std::string_view> path) {
    text.remove_prefix(text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
    rapidjson::MemoryStream stream(text.data(), text.size());
    rapidjson::Reader reader;
    PathFinder finder(path);
    reader.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(stream, finder);
    return std::move(finder).found();
}

bool equal(Value a, Value b) {
    if (a.type() != b.type()) {
        return false;
    }
    switch (a.type()) {
        case Type::absent:
        case Type::null: return true;
        case Type::boolean: return a.tag() == b.tag();
        case Type::string: return a.raw_string() == b.raw_string();
        case Type::number: {
            if (a.tag() == b.tag()) {
                return a.tag() == 'd' ? *a.as_double() == *b.as_double()
                                      : a.tape()[a.index() + 1] == b.tape()[b.index() + 1];
            }
            const auto whole_a = a.as_int64();
            const auto whole_b = b.as_int64();
            if (whole_a || whole_b) {
                return whole_a == whole_b;
            }
            return *a.as_double() == *b.as_double();
        }
        case Type::array: {
            const Elements in_a = a.elements();
            const Elements in_b = b.elements();
            auto i = in_a.begin();
            auto j = in_b.begin();
            for (; i != in_a.end() && j != in_b.end(); ++i, ++j) {
                if (!equal(*i, *j)) {
                    return false;
                }
            }
            return !(i != in_a.end()) && !(j != in_b.end());
        }
        case Type::object: {
            if (a.size() != b.size()) {
                return false;
            }
            for (const Member member : a.members()) {
                const Value other = b.at(member.name);
                if (!other.exists() || !equal(member.value, other)) {
                    return false;
                }
            }
            return true;
        }
    }
    return false;
}

namespace {
// Of eight bytes none needs an escape. May say no where the answer is yes.
bool all_plain(const char* eight) noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101ULL;
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, eight, sizeof bytes);
    const auto below = [](std::uint64_t w, std::uint64_t least) { return (w - ones * least) & ~w & ones * 0x80; };
    return (below(bytes, 0x20) | below(bytes ^ ones * '"', 1) | below(bytes ^ ones * '\\', 1)) == 0;
}
}  // namespace

void append_quoted(std::string& out, std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    out.push_back('"');
    std::size_t from = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (i + 8 <= text.size() && all_plain(text.data() + i)) {
            i += 7;
            continue;
        }
        const auto c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        out.append(text.substr(from, i - from));
        from = i + 1;
        switch (c) {
            case '"': out.append("\\\""); break;
            case '\\': out.append("\\\\"); break;
            case '\n': out.append("\\n"); break;
            case '\r': out.append("\\r"); break;
            case '\t': out.append("\\t"); break;
            default:
                out.append("\\u00");
                out.push_back(hex[c >> 4U]);
                out.push_back(hex[c & 0xFU]);
        }
    }
    out.append(text.substr(from));
    out.push_back('"');
}

void append(std::string& out, Value value) {
    switch (value.type()) {
        case Type::absent: break;
        case Type::null: out.append("null"); break;
        case Type::boolean: out.append(value.tag() == 't' ? "true" : "false"); break;
        case Type::string: append_quoted(out, value.raw_string()); break;
        case Type::number:
            switch (value.tag()) {
                case 'l': out.append(std::to_string(*value.as_int64())); break;
                case 'u': out.append(std::to_string(value.tape()[value.index() + 1])); break;
                default: out.append(shortest(*value.as_double()));
            }
            break;
        case Type::array: {
            char before = '[';
            for (const Value element : value.elements()) {
                out.push_back(before);
                before = ',';
                append(out, element);
            }
            out.append(before == '[' ? "[]" : "]");
            break;
        }
        case Type::object: {
            char before = '{';
            for (const Member member : value.members()) {
                out.push_back(before);
                before = ',';
                append_quoted(out, member.name);
                out.push_back(':');
                append(out, member.value);
            }
            out.append(before == '{' ? "{}" : "}");
            break;
        }
    }
}

std::string to_text(Value value) {
    std::string out;
    append(out, value);
    return out;
}

std::string quoted(std::string_view text) {
    std::string out;
    append_quoted(out, text);
    return out;
}

std::string text_of(Value value) {
    return std::string{value.string_or("")};
}

std::string excerpt(Value value, std::size_t bytes_max) {
    // Long strings are cut before they are escaped, containers are told by their size: an excerpt costs little.
    std::string out;
    if (value.is_string()) {
        append_quoted(out, value.raw_string().substr(0, bytes_max + 4));
    } else if (value.is_object() && value.size() > 0) {
        out = "an object of " + std::to_string(value.size()) + (value.size() == 1 ? " member" : " members");
    } else if (value.is_array() && value.size() > 0) {
        out = "a list of " + std::to_string(value.size()) + (value.size() == 1 ? " item" : " items");
    } else {
        append(out, value);
    }
    if (out.size() > bytes_max) {
        std::size_t cut = bytes_max;
        while (cut > 0 && (static_cast<unsigned char>(out[cut]) & 0xC0U) == 0x80U) {
            --cut;
        }
        out.resize(cut);
        out.append("…");
    }
    return out;
}

std::string merge_patch(Value target, Value patch) {
    if (!patch.is_object()) {
        return to_text(patch);
    }
    std::string out;
    char before = '{';
    const auto put = [&](std::string_view name, const std::string& value) {
        out.push_back(before);
        before = ',';
        append_quoted(out, name);
        out.push_back(':');
        out.append(value);
    };
    for (const Member member : target.members()) {
        const Value change = patch.at(member.name);
        if (!change.exists()) {
            put(member.name, to_text(member.value));
        } else if (!change.is_null()) {
            put(member.name, merge_patch(member.value, change));
        }
    }
    for (const Member member : patch.members()) {
        if (!target.at(member.name).exists() && !member.value.is_null()) {
            put(member.name, merge_patch(Value{}, member.value));
        }
    }
    out.append(before == '{' ? "{}" : "}");
    return out;
}

void append_pointer_token(std::string& out, std::string_view token) {
    std::size_t from = 0;
    for (std::size_t i = 0; i < token.size(); ++i) {
        if (token[i] == '~' || token[i] == '/') {
            out.append(token.substr(from, i - from)).append(token[i] == '~' ? "~0" : "~1");
            from = i + 1;
        }
    }
    out.append(token.substr(from));
}

}  // namespace ossa::json
