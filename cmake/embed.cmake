# Turns a text file into a C++ string literal, in pieces that every compiler takes.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "#include <string_view>
namespace ossa::embedded {
namespace {
constexpr unsigned char bytes[] = {${bytes}0};
}
extern const std::string_view ${NAME};
const std::string_view ${NAME}{reinterpret_cast<const char*>(bytes), sizeof bytes - 1};
}
")
