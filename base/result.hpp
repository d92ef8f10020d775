// Result<T>: a value or an Error; every operation that can fail returns one, and it may not be dropped.
// OSSA_TRY hands the Error on. In coroutines use OSSA_CO_TRY.
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "base/error.hpp"

namespace ossa {

template <class T = void>
class [[nodiscard]] Result : public tl::expected<T, Error> {
  public:
    using tl::expected<T, Error>::expected;
    Result(tl::expected<T, Error> other) : tl::expected<T, Error>(std::move(other)) {}
};

inline tl::unexpected<Error> unexpected(Error error) {
    return tl::unexpected<Error>(std::move(error));
}
inline tl::unexpected<Error> failure(ErrorCode code, std::string message) {
    return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace ossa

#define OSSA_CONCAT_(a, b) a##b
#define OSSA_CONCAT(a, b) OSSA_CONCAT_(a, b)
#define OSSA_TRY_(result, declaration, ret, ...)           \
    auto result = (__VA_ARGS__);                           \
    if (!result) {                                         \
        ret ::ossa::unexpected(std::move(result).error()); \
    }                                                      \
    declaration = std::move(*result)
// OSSA_TRY(auto x, expression): x is the value, or the function returns the Error.
#define OSSA_TRY(declaration, ...) OSSA_TRY_(OSSA_CONCAT(ossa_try_, __LINE__), declaration, return, __VA_ARGS__)
#define OSSA_CO_TRY(declaration, ...) OSSA_TRY_(OSSA_CONCAT(ossa_try_, __LINE__), declaration, co_return, __VA_ARGS__)
// The same for Result<void>.
#define OSSA_CHECK(...)                                            \
    if (auto ossa_check_ = (__VA_ARGS__); !ossa_check_) {          \
        return ::ossa::unexpected(std::move(ossa_check_).error()); \
    }
#define OSSA_CO_CHECK(...)                                            \
    if (auto ossa_check_ = (__VA_ARGS__); !ossa_check_) {             \
        co_return ::ossa::unexpected(std::move(ossa_check_).error()); \
    }
