// The tape that both readers fill, after simdjson's (doc/tape.md): one 64-bit word for each value and name, the tag in
// its upper byte. Unlike simdjson's, the word of a string has the text's size too, so that it is known without touching
// it.
//   r  first: words in all; last
//   { [  children (24 bits, all ones: "many"), index behind the end (32)      } ]  index of the beginning
//   "  bytes (24), offset in the strings (32)      l u d  the number is the next word      t f n
// Private to base/; json::Value reads it.
#pragma once

#include <cstdint>

namespace ossa::json {

inline constexpr std::uint64_t many_children = 0xFFFFFF;
inline constexpr std::size_t string_bytes_max = 0xFFFFFF;

constexpr std::uint64_t tape_word(char tag, std::uint64_t payload = 0) {
    return (std::uint64_t{static_cast<unsigned char>(tag)} << 56U) | payload;
}
constexpr std::uint64_t tape_string(std::uint64_t bytes, std::uint64_t offset) {
    return tape_word('"', bytes << 32U | offset);
}
constexpr char tape_tag(std::uint64_t word) {
    return static_cast<char>(word >> 56U);
}

}  // namespace ossa::json
