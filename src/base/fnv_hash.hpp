// FNV-1a, 64 bits: for texts that nobody chooses to collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace homing {

constexpr std::uint64_t fnv_hash(std::string_view text) noexcept {
    std::uint64_t hash = 14695981039346656037u;
    for (const char letter : text)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
    return hash;
}

} // namespace homing
