// Where the pages of a block belong that is allocated anew in every iteration (areas/allocation_plans.hpp).
#pragma once

#include "areas/allocation_plans.hpp"
#include "areas/watched_area.hpp"
#include "kernel/mover.hpp"

#include <cstdint>
#include <vector>

namespace homing {

/// Does first touch put the pages of this temporary, whose memory is new, where they do not belong? It has a
/// belief of all of its granules.
bool is_astray(Mover& mover, WatchedArea& area, std::uint32_t iteration);

/// Where the pages of such a block belong, in runs; none where they are too short.
std::vector<AllocationPlans::Run> runs_of(const WatchedArea& area, const NodeMap& nodes);

} // namespace homing
