// json_quick: the reader of nearly every text. simdjson finds the structure (quotes, structural characters, UTF-8); one
// pass of ours over it writes the tape and sees to all that a Document must keep: grammar, depth, number of values, no
// repeated names. It gives only a quick yes: for whatever it does not take (an error, an integer of 19 digits, a lone
// scalar) the caller asks RapidJSON, whose verdict and message count. Private to base/.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace simdjson::internal {
class dom_parser_implementation;
}

namespace ossa::json {

class QuickReader {
  public:
    QuickReader();
    ~QuickReader();

    // text: padding_bytes behind it may be read, and it must live as long as the tape is used: unless it has escapes,
    // the strings stay where they are. False: ask the other reader. The tape is valid until the next read.
    bool read(std::string_view text, const Limits& limits);

    const std::uint64_t* tape() const noexcept { return tape_.get(); }
    const std::uint8_t* strings() const noexcept { return strings_; }
    unsigned deepest() const noexcept { return deepest_; }

  private:
    // An open object or array.
    struct Scope {
        std::uint64_t seen;  // a bit for each name, by bit_of
        std::uint32_t* first_name;
        std::uint32_t start;     // on the tape
        std::uint32_t elements;  // of an array, the one at hand aside
        bool is_object;
    };

    bool reserve(std::size_t bytes, std::size_t depth);
    template <bool HasEscapes>
    bool pass(const std::uint8_t* text, const Limits& limits);
    bool unescape(const std::uint8_t* from, std::uint8_t* to, std::size_t& size) const;
    unsigned scalar(const std::uint8_t* from, const std::uint8_t* following, std::uint64_t* words) const;
    std::string_view text_of(std::uint32_t name) const;
    bool stands_before(std::string_view text, const std::uint32_t* first, const std::uint32_t* last) const;
    bool is_repeated(std::uint32_t* first, std::uint32_t* last) const;

    std::unique_ptr<simdjson::internal::dom_parser_implementation> structure_;
    std::unique_ptr<std::uint64_t[]> tape_;
    std::unique_ptr<std::uint8_t[]> unescaped_;
    const std::uint8_t* strings_ = nullptr;   // the text or unescaped_
    std::unique_ptr<std::uint32_t[]> names_;  // on the tape, of all objects that are open
    std::vector<Scope> scopes_;
    std::size_t words_ = 0, unescaped_size_ = 0, names_size_ = 0;
    unsigned deepest_ = 0;
};

}  // namespace ossa::json
