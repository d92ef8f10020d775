// Buffer: the bytes of one request. BufferPool: a worker's spare buffers. ByteBudget and Charge: what bodies may hold
// together. Private to net.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

namespace ossa::net {

// Malloc'ed memory that grows by realloc: large blocks are moved by the kernel, not copied.
class Buffer {
  public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer();

    // False: no memory; then nothing has changed.
    [[nodiscard]] bool resize(std::size_t capacity) noexcept;
    char* data() noexcept { return data_; }
    const char* data() const noexcept { return data_; }
    std::size_t capacity() const noexcept { return capacity_; }
    explicit operator bool() const noexcept { return data_ != nullptr; }

  private:
    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(capacity_, other.capacity_);
    }
    char* data_ = nullptr;
    std::size_t capacity_ = 0;
};

// Owned by one worker thread. Keeps a bounded number of buffers of two sizes and frees all others.
class BufferPool {
  public:
    static constexpr std::size_t small_bytes = std::size_t{16} << 10;   // a TLS record or a typical request
    static constexpr std::size_t medium_bytes = std::size_t{80} << 10;  // a large one, 64 KiB and its head
    static constexpr std::size_t small_kept = 32;
    static constexpr std::size_t medium_kept = 4;

    Buffer take_small() noexcept { return take(small_, small_bytes); }
    Buffer take_medium() noexcept { return take(medium_, medium_bytes); }
    void give_back(Buffer buffer) noexcept;

  private:
    static Buffer take(std::vector<Buffer>& spare, std::size_t bytes) noexcept;
    std::vector<Buffer> small_;
    std::vector<Buffer> medium_;
};

class ByteBudget {
  public:
    explicit ByteBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
    bool try_take(std::size_t bytes) noexcept {
        if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= bytes_max_) {
            return true;
        }
        used_.fetch_sub(bytes, std::memory_order_relaxed);
        return false;
    }
    void give_back(std::size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
    std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

  private:
    const std::size_t bytes_max_;
    alignas(64) std::atomic<std::size_t> used_{0};
};

// A part of the budget, given back at its end. Must not outlive the budget.
class Charge {
  public:
    Charge() = default;
    Charge(Charge&& other) noexcept { swap(other); }
    Charge& operator=(Charge&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Charge() { reset(); }

    // Always against the same budget. False: over it; then nothing has changed.
    [[nodiscard]] bool raise_to(ByteBudget& budget, std::size_t bytes) noexcept {
        if (bytes > bytes_) {
            if (!budget.try_take(bytes - bytes_)) {
                return false;
            }
            budget_ = &budget;
            bytes_ = bytes;
        }
        return true;
    }
    void reset() noexcept {
        if (bytes_ != 0) {
            budget_->give_back(std::exchange(bytes_, 0));
        }
    }

  private:
    void swap(Charge& other) noexcept {
        std::swap(budget_, other.budget_);
        std::swap(bytes_, other.bytes_);
    }
    ByteBudget* budget_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace ossa::net
