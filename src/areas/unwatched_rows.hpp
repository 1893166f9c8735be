// What is not watched, in the record.
#pragma once

#include "areas/watch.hpp"

namespace homing {

/// The largest pieces of memory that are not watched, by what they are, and why; and what became of the rules
/// of --areas.
void record_unwatched(WatchList& watch);

} // namespace homing
