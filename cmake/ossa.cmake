# What every room shares: language, warnings, sanitizers, hardening, ccache; and the one call that makes a room.
get_filename_component(OSSA_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

option(OSSA_TESTS "build the tests" ON)
option(OSSA_ASSERTIONS "library assertions, and abort on a bug of ours" OFF)
option(OSSA_LTO "link-time optimization" OFF)
set(OSSA_PROFILE "" CACHE STRING "profile-guided optimization: make, use (cmake/release.sh)")
set(OSSA_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize has them")
set(OSSA_FUZZERS OFF CACHE BOOL "build the libFuzzer targets (clang)")

find_program(OSSA_CCACHE ccache)
if(OSSA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OSSA_CCACHE})
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wno-missing-field-initializers -Werror -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Wrong about Asio's coroutine frames, whose new and delete are a pair (GCC 12).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options(-fconstexpr-steps=10000000)  # the keyword tables of schema/ are made at compile time
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-D_FORTIFY_SOURCE=2 -fstack-protector-strong)
  add_link_options(-Wl,-z,relro,-z,now -Wl,--as-needed)
endif()
add_compile_options(-fPIE)
add_link_options(-pie)
if(OSSA_ASSERTIONS)
  add_compile_definitions(_GLIBCXX_ASSERTIONS OSSA_ABORT_ON_BUG)
endif()
if(OSSA_SANITIZE)
  add_compile_options(-fsanitize=${OSSA_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OSSA_SANITIZE})
  if(OSSA_SANITIZE MATCHES thread)
    # Asio's fences are atomics the sanitizer cannot see (asio issue 1193).
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
    add_compile_options(-Wno-tsan)
  endif()
endif()
if(OSSA_LTO)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

set(OSSA_PROFILE_DIR ${CMAKE_BINARY_DIR}/profile)
if(OSSA_PROFILE STREQUAL "make")
  add_compile_options(-fprofile-generate=${OSSA_PROFILE_DIR} -fprofile-update=atomic)
  add_link_options(-fprofile-generate=${OSSA_PROFILE_DIR})
elseif(OSSA_PROFILE STREQUAL "use")
  # What changed since the training is compiled without its profile, without a word.
  add_compile_options(-fprofile-use=${OSSA_PROFILE_DIR} -fprofile-correction -Wno-missing-profile -Wno-coverage-mismatch)
  add_link_options(-fprofile-use=${OSSA_PROFILE_DIR})
endif()

add_compile_definitions(OSSA_VERSION="${PROJECT_VERSION}")

find_package(Threads REQUIRED)

# ossa_library(NAME engine SOURCES a.cpp DEPS schema PRIVATE re2): one room. DEPS are rooms, PRIVATE third-party libraries
# that its public headers do not show. The purity line is this list: a pure room names no Asio, OpenSSL or spdlog.
function(ossa_library)
  cmake_parse_arguments(ROOM "" "NAME" "SOURCES;DEPS;PRIVATE" ${ARGN})
  add_library(ossa_${ROOM_NAME} STATIC ${ROOM_SOURCES})
  target_include_directories(ossa_${ROOM_NAME} PUBLIC ${OSSA_ROOT})
  list(TRANSFORM ROOM_DEPS PREPEND ossa_)
  target_link_libraries(ossa_${ROOM_NAME} PUBLIC ${ROOM_DEPS} PRIVATE ${ROOM_PRIVATE})
endfunction()

# ossa_embed(NAME ossa_schema FILE x.json): makes <NAME>.cpp with `const std::string_view ossa::embedded::NAME`.
function(ossa_embed target)
  cmake_parse_arguments(E "" "NAME;FILE" "" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded_${E_NAME}.cpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DNAME=${E_NAME} -DIN=${CMAKE_CURRENT_SOURCE_DIR}/${E_FILE} -DOUT=${out}
            -P ${OSSA_ROOT}/cmake/embed.cmake
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${E_FILE} ${OSSA_ROOT}/cmake/embed.cmake)
  target_sources(${target} PRIVATE ${out})
endfunction()
