// A range of memory whose references are wanted.
#pragma once

#include "base/pages.hpp"

#include <cstddef>

namespace homing {

/// What a source can watch now: the watched ranges, ascending and disjoint, with their granule.
struct WatchedRange {
    Range range;
    std::size_t granule = 4096;
    int area = -1; ///< index of the engine's area
};

} // namespace homing
