#include "net/buffer.hpp"

#include <cstdlib>

namespace ossa::net {

Buffer::~Buffer() {
    std::free(data_);
}

bool Buffer::resize(std::size_t capacity) noexcept {
    void* const moved = std::realloc(data_, capacity);
    if (moved == nullptr) {
        return false;
    }
    data_ = static_cast<char*>(moved);
    capacity_ = capacity;
    return true;
}

Buffer BufferPool::take(std::vector<Buffer>& spare, std::size_t bytes) noexcept {
    Buffer out;
    if (!spare.empty()) {
        out = std::move(spare.back());
        spare.pop_back();
    } else if (!out.resize(bytes)) {
        return {};
    }
    return out;
}

void BufferPool::give_back(Buffer buffer) noexcept {
    try {
        if (buffer.capacity() == small_bytes && small_.size() < small_kept) {
            small_.reserve(small_kept);
            small_.push_back(std::move(buffer));
        } else if (buffer.capacity() == medium_bytes && medium_.size() < medium_kept) {
            medium_.reserve(medium_kept);
            medium_.push_back(std::move(buffer));
        }
    } catch (...) {
        // No memory to keep it: it is freed.
    }
}

}  // namespace ossa::net
