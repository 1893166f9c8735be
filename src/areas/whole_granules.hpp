// Granules that move whole: what next touch arms.
#pragma once

#include "areas/watch.hpp"

#include <cstddef>
#include <vector>

namespace homing {

/// The granules of `bytes` (a multiple of the page's size; on huge pages of theirs at the least) of all that
/// may be armed of the areas and lies within the range, ascending; an empty range: of all areas but those
/// that are left alone (bound by the program, or not hot where others are). The first and last of an area are
/// smaller where it begins or ends within one.
std::vector<Range> whole_granules(const WatchList& watch, Range within, std::size_t bytes);

/// Ascending, each once: of two that overlap the one that begins first.
std::vector<Range> without_overlaps(std::vector<Range> granules);

} // namespace homing
