// The parallel regions in the record.
#pragma once

#include "areas/watch.hpp"
#include "sources/region_table.hpp"

namespace homing {

/// Records which regions and barriers there were, how often and how long they ran.
void record_regions(const RegionTable& regions, WatchList& watch);

} // namespace homing
