#include "counters/hot_memory.hpp"

#include "areas/named.hpp"
#include "base/find_range.hpp"

#include <algorithm>
#include <functional>

namespace homing::counters {

HotMemory::HotMemory() {
    for (const Range& range : hot_ranges()) { // they may overlap
        if (ranges_.empty() || ranges_.back().end < range.begin)
            ranges_.push_back(range);
        else
            ranges_.back().end = std::max(ranges_.back().end, range.end);
    }
}

bool HotMemory::has(const WatchedArea& area, std::uint64_t granule) const {
    if (ranges_.empty()) return true;
    // What is registered may begin and end within a page: the middle decides.
    const Range range = area.granule_range(granule);
    return find_range(ranges_, range.begin + range.bytes() / 2, std::identity()) != nullptr;
}

} // namespace homing::counters
