#include "net/request.hpp"

#include <boost/asio/io_context.hpp>

#include "base/bug.hpp"
#include "net/log.hpp"
#include "net/session.hpp"

namespace ossa::net {

std::string_view to_string(Method method) noexcept {
    switch (method) {
        case Method::get: return "GET";
        case Method::head: return "HEAD";
        case Method::post: return "POST";
        case Method::put: return "PUT";
        case Method::patch: return "PATCH";
        case Method::delete_: return "DELETE";
        case Method::options: return "OPTIONS";
        case Method::other: break;
    }
    return "OTHER";
}

std::optional<std::string_view> Request::parameter(std::string_view name) const noexcept {
    std::string_view rest = query;
    while (!rest.empty()) {
        const std::size_t end = rest.find('&');
        const std::string_view pair = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
        const std::size_t equals = pair.find('=');
        if (pair.substr(0, equals) == name) {
            return equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
        }
    }
    return std::nullopt;
}

void Response::reset() noexcept {
    status = 200;
    content_type = "application/json";
    body.clear();
    retry_after_seconds.reset();
    close = false;
}

void Response::plain(unsigned code, std::string_view text) {
    status = code;
    content_type = "text/plain; charset=utf-8";
    body = text;
}

Responder::Responder(std::unique_ptr<Deferred> deferred) noexcept : deferred_(std::move(deferred)) {}
Responder::Responder(Responder&&) noexcept = default;

Responder& Responder::operator=(Responder&& other) noexcept {
    if (this != &other) {
        finish();
        deferred_ = std::move(other.deferred_);
    }
    return *this;
}

Responder::~Responder() {
    finish();
}

const Request& Responder::request() const noexcept {
    return deferred_->request;
}
Response& Responder::response() noexcept {
    return deferred_->response;
}

void Responder::send() && {
    Deferred::give_back(std::move(deferred_));
}

void Responder::finish() noexcept {
    if (!deferred_) {
        return;
    }
    try {
        count_bug();
        OSSA_LOG(error, "a handler dropped its request", {"path", deferred_->request.path});
        deferred_->response.reset();
        deferred_->response.plain(500, "internal error\n");
        Deferred::give_back(std::move(deferred_));
    } catch (...) {
        deferred_.reset();  // the answer deadline speaks for us
    }
}

Responder Exchange::defer() {
    deferred_ = true;
    return Responder{session_.defer(request_, response_)};
}

boost::asio::io_context& Exchange::context() noexcept {
    return session_.context();
}

}  // namespace ossa::net
