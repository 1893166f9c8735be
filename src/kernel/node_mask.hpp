// The kernel's sets of nodes.
#pragma once

#include "kernel/kernel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>

namespace homing {

// The kernel refuses masks shorter than the highest possible node, however few are in use: 1,024 is the
// largest number any architecture is built with. It reads one bit less than it is told (mm/mempolicy.c:
// --maxnode).
struct NodeMask {
    static constexpr unsigned long bits = 1024;
    std::uint64_t words[bits / 64] = {};

    /// Those below 64. EOVERFLOW where there are others, which a NodeSet cannot express.
    int get(NodeSet& found) const noexcept {
        found.bits = words[0];
        const bool fits =
            std::all_of(words + 1, std::end(words), [](std::uint64_t word) { return word == 0; });
        return fits ? 0 : EOVERFLOW;
    }
};

} // namespace homing
