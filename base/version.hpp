// The release this source tree becomes; CMake sets it from project(VERSION).
#pragma once

#include <string_view>

namespace ossa {
inline constexpr std::string_view version = OSSA_VERSION;
}
