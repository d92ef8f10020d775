// Limits: every bound the HTTP server keeps, in one place. A limit of zero is not "unlimited"; choose a number.
#pragma once

#include <chrono>
#include <cstddef>

namespace ossa::net {

struct Limits {
    // Request line and header fields together; beyond it 431.
    std::size_t head_bytes_max = std::size_t{16} << 10;
    // One body, decoded; beyond it 413 and the connection ends.
    std::size_t body_bytes_max = std::size_t{7} << 20;
    // What all bodies of the server hold in memory together; beyond it 503 with Retry-After. Charged as bytes arrive,
    // by the memory that they take beyond the first 16 KiB of a connection, so that announcing a length reserves
    // nothing.
    std::size_t inflight_bytes_max = std::size_t{64} << 20;
    // Open connections; one more is accepted and closed at once.
    std::size_t connections_max = 4096;

    std::chrono::milliseconds handshake_deadline{5'000};
    // From the first byte of a request to its last.
    std::chrono::milliseconds read_deadline{10'000};
    // From the last byte of a request to its answer, for handlers that answer later; then 504.
    std::chrono::milliseconds answer_deadline{30'000};
    // From the first byte of an answer to its last.
    std::chrono::milliseconds write_deadline{10'000};
    // Between requests. Longer than the peer's own idle limit, so that the peer ends the connection, which loses
    // nothing.
    std::chrono::milliseconds idle_max{120'000};

    // After an answer that ends the connection: how long and how much we go on reading and dropping, so that the peer
    // reads the answer before a reset can reach it.
    std::chrono::milliseconds linger_max{2'000};
    std::size_t linger_bytes_max = std::size_t{1} << 20;

    // After the grace time of drain(): what is still in flight then has this long to end.
    std::chrono::milliseconds drain_max{15'000};
};

}  // namespace ossa::net
