#include "areas/watched_area.hpp"

#include "base/find_range.hpp"

#include <functional>
#include <utility>

namespace homing {
namespace {

/// Of single entries all granules; of blocks those that a block has a part of.
PageSet own_granules(const WatchedArea& area) {
    if (area.group.blocks.empty()) return PageSet::whole(area.granules);
    std::vector<policy::PageRange> own;
    std::uint64_t next = 0;
    for (const Range& block : area.group.blocks) {
        const Range inside{std::max(block.begin, area.range.begin), std::min(block.end, area.range.end)};
        if (inside.empty()) continue;
        own.push_back({std::max(next, area.granule_of(inside.begin)), area.granule_of(inside.end - 1) + 1});
        next = own.back().end;
    }
    return PageSet(own);
}

} // namespace

Range WatchedArea::granule_range(std::uint64_t index) const noexcept {
    const Address begin = origin + index * granule;
    return {std::max(begin, range.begin), std::min<Address>(begin + granule, range.end)};
}

void WatchedArea::move_to(BlockGroup to, Range pages) {
    const bool elsewhere = pages.begin != range.begin;
    group = std::move(to);
    range = pages;
    origin = align_down(range.begin, granule);
    seen_homes.forget();
    refused = {};
    learnt.forget_departures(granules);
    pending.clear();
    chosen = false;
    waiting = sent_home = false;
    remote_misses = 0;
    initially_dealt.clear();
    initial_looks = 0;
    initial_next = 0;
    armable.clear();
    if (!elsewhere) return; // the allocator keeps pages of memory that was freed: they exist
    seen = in_part = false;
    share_there = 1;
    trust = trusted = 0;
    exists = own;
}

bool WatchedArea::is_armable(std::uint64_t index) const noexcept {
    const Range wanted = granule_range(index);
    if (wanted.bytes() != granule) return false; // a part of a huge page would split it
    const Range* const part = find_range(armable, wanted.begin, std::identity());
    return part && wanted.end <= part->end;
}

void WatchedArea::number_granules(std::size_t bytes, int nodes, std::uint64_t seed) {
    granule = bytes;
    origin = align_down(range.begin, granule);
    granules = (range.end - origin + granule - 1) / granule;
    own = own_granules(*this);
    exists = own;
    learnt.reset(granules);
    remote_share.reset(granules, nodes, seed);
    seen_homes.forget();
    refused = {};
    next_to_move = 0;
    initially_dealt.clear();
    pending.clear();
}

void WatchedArea::find_homes_of_fresh(Mover& mover) {
    std::vector<std::uint64_t> touched;
    for (const FreshTouch& touch : learnt.fresh)
        touched.push_back(touch.granule);
    std::vector<int> homes;
    mover.homes(*this, touched, homes);
    for (std::size_t i = 0; i < homes.size(); ++i)
        learnt.fresh[i].home = static_cast<model::Node>(homes[i]);
}

} // namespace homing
