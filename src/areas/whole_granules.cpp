#include "areas/whole_granules.hpp"

#include "base/pages.hpp"

#include <algorithm>

namespace homing {

std::vector<Range> whole_granules(const WatchList& watch, Range within, std::size_t bytes) {
    std::vector<Range> found;
    for (const auto& area : watch.areas()) {
        if (within.empty() && area->left_alone()) continue;
        const bool huge = area->granule > page_bytes();
        const std::size_t unit = huge ? area->granule : bytes;
        for (const Range& part : area->armable) {
            Address begin = std::max(part.begin, area->range.begin);
            Address end = std::min(part.end, area->range.end);
            if (!within.empty()) {
                begin = std::max(begin, align_up(within.begin, page_bytes()));
                end = std::min(end, align_down(within.end, page_bytes()));
            }
            if (huge) begin = align_up(begin, area->granule); // a part of a huge page would split it
            while (begin < end) {
                const Address next = std::min<Address>(align_down(begin + unit, unit), end);
                if (!huge || next - begin == unit) found.push_back({begin, next});
                begin = next;
            }
        }
    }
    return found;
}

std::vector<Range> without_overlaps(std::vector<Range> granules) {
    std::ranges::sort(granules, {}, &Range::begin);
    std::vector<Range> kept;
    for (const Range& one : granules)
        if (kept.empty() || kept.back().end <= one.begin) kept.push_back(one);
    return kept;
}

} // namespace homing
