// Phases that a program marks (apps/common/mark.h): what is counted between two marks, as the lab's counter
// keeps it.
#pragma once

#include "model.hpp"

#include <cstdint>
#include <vector>

namespace homing::simulator {

/// What was counted in a phase, which may have been entered several times.
struct Phase {
    std::uint32_t number = 0;
    std::uint64_t entries = 0;
    Totals counts;
};

/// The phases that were marked, in the order of their first marks; the one that is under way ends now.
/// Phase 0 is not counted.
const std::vector<Phase>& marked_phases();

} // namespace homing::simulator
