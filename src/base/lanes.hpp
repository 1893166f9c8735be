// Four ids at a time; GCC's and clang's portable vectors (SSE2, NEON), so that the cost does not depend on
// what the optimiser makes of a loop at -O2.
#pragma once

#include <cstdint>
#include <cstring>

namespace homing::phases {

using Lanes = std::int32_t __attribute__((vector_size(16)));
inline constexpr std::uint32_t lanes = 4;

inline Lanes load(const std::uint32_t* from) {
    Lanes result;
    std::memcpy(&result, from, sizeof result);
    return result;
}
inline void store(std::uint32_t* to, Lanes value) { std::memcpy(to, &value, sizeof value); }

} // namespace homing::phases
