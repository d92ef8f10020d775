#include "base/error.hpp"

namespace ossa {

std::string_view to_string(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::invalid: return "invalid";
        case ErrorCode::not_found: return "not_found";
        case ErrorCode::conflict: return "conflict";
        case ErrorCode::already_exists: return "already_exists";
        case ErrorCode::gone: return "gone";
        case ErrorCode::forbidden: return "forbidden";
        case ErrorCode::unauthenticated: return "unauthenticated";
        case ErrorCode::throttled: return "throttled";
        case ErrorCode::too_large: return "too_large";
        case ErrorCode::deadline: return "deadline";
        case ErrorCode::unavailable: return "unavailable";
        case ErrorCode::cancelled: return "cancelled";
        case ErrorCode::internal: return "internal";
    }
    return "internal";
}

Error&& Error::with(std::string_view context) && {
    message_.insert(0, ": ");
    message_.insert(0, context);
    return std::move(*this);
}

Error&& Error::after(std::chrono::milliseconds retry_after) && {
    retry_after_ = retry_after;
    return std::move(*this);
}

bool Error::retryable() const noexcept {
    switch (code_) {
        case ErrorCode::conflict:
        case ErrorCode::gone:
        case ErrorCode::throttled:
        case ErrorCode::deadline:
        case ErrorCode::unavailable: return true;
        case ErrorCode::invalid:
        case ErrorCode::not_found:
        case ErrorCode::already_exists:
        case ErrorCode::forbidden:
        case ErrorCode::unauthenticated:
        case ErrorCode::too_large:
        case ErrorCode::cancelled:
        case ErrorCode::internal: return false;
    }
    return false;
}

}  // namespace ossa
