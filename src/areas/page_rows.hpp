// An area in the record: on which nodes its pages lie, where references to them went, and what is made of
// that.
#pragma once

#include "areas/watched_area.hpp"
#include "kernel/mover.hpp"

#include <cstdint>

namespace homing {

/// When an area is looked at: 1 as found (once an area), 2 now, 3 at the end (docs/record.md).
struct LookedAt {
    std::uint32_t when, iteration;
};

/// Records on which of so many nodes an area's pages lie, as `most` of them at the most show. False, and no
/// row: at the end most of them have been given back, and the others do not tell where they lay.
bool record_pages_by_node(WatchedArea& area, Mover& mover, int nodes, LookedAt at, std::uint64_t most);

/// Records where the fresh references went (references rows), whose homes are known.
void record_references(const WatchedArea& area, int nodes, std::uint32_t iteration);

/// Records what is believed of an area, which has a belief, and how many of its pages are to move.
void record_belief(const WatchedArea& area, std::uint32_t iteration, std::uint64_t pages_to_move);

/// Records what is known of an area's remote share. by_access: references are a sample of accesses. traffic:
/// what its accesses weigh among those of all areas.
void record_estimate(WatchedArea& area, Mover& mover, std::uint32_t iteration, bool by_access,
                     double traffic);

} // namespace homing
