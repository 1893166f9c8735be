// Place memory now, by a rule of the program's own (C API): outside any mechanism.
#pragma once

#include "base/nodes.hpp"
#include "kernel/kernel.hpp"
#include "kernel/mover.hpp"
#include "kernel/node_map.hpp"

#include <cstdint>
#include <functional>
#include <span>

namespace homing {

struct PlacementResult : Moves {
    std::uint64_t pages = 0;  ///< whole pages of the range
    std::uint64_t absent = 0; ///< not populated: their policy decides when they are touched
    std::uint64_t there = 0;  ///< on their node afterwards (second query); those that moved are among them

    void add(const PlacementResult& other);
};

/// Page i of the range's whole pages goes to target_of(i), a position of `nodes`; pages to come follow
/// `policy`. No page of the range may be in a window (Windows::release): the kernel moves none of those, and
/// some say that it does not exist.
PlacementResult place_pages(Kernel& kernel, const NodeMap& nodes, Range range,
                            const std::function<policy::Node(std::uint64_t)>& target_of, MemoryPolicy policy,
                            const std::function<void()>& prepare = {});

/// The node of each whole page, -1 where it is not populated or the kernel hides it. Returns the number of
/// pages; fills at most `nodes`. reveal: look twice at what is hidden, after `prepare` (query_revealed).
std::uint64_t where_pages_are(Kernel& kernel, Range range, std::span<int> nodes, bool reveal = true,
                              const std::function<void()>& prepare = {});

} // namespace homing
