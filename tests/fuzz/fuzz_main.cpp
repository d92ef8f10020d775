// libFuzzer's entry for the target OSSA_FUZZ_TARGET.
#include <cstddef>
#include <cstdint>

#include "fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ossa::fuzz::OSSA_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
    return 0;
}
