#include "areas/area_shape.hpp"

#include "areas/areas.hpp"
#include "areas/block_cover.hpp"
#include "base/random.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace homing {
namespace {

/// The arrays that lie in the allocator's memory, where most of it is of such as a team can share. Not of
/// more than a chunk: blocks that are too small to be areas are hundreds there.
std::vector<model::Block> blocks_of(const WatchedArea& area, int threads) {
    std::vector<model::Block> blocks;
    if (area.group.entry.kind != AreaKind::arena || area.granule != page_bytes() ||
        area.range.bytes() > BlockCover::chunk_bytes)
        return blocks;
    std::vector<Range> ranges;
    block_cover().blocks_within(area.range, ranges);
    std::uint64_t shared_out = 0;
    for (const Range& range : ranges) {
        const std::uint64_t first = area.granule_of(range.begin), pages = range.bytes() / area.granule;
        // Where it begins in its first page is not known, nor where behind its whole pages it ends: half a
        // page in, and half a page on.
        blocks.push_back({static_cast<double>(first) + .5, static_cast<double>(pages)});
        if (pages >= static_cast<std::uint64_t>(threads)) shared_out += pages;
    }
    if (2 * shared_out < area.granules) blocks.clear();
    return blocks;
}

} // namespace

std::uint64_t size_kind(const WatchedArea& area) { return area.granules * 2 * splitmix_step ^ area.granule; }
std::uint64_t site_kind(const WatchedArea& area) {
    std::uint64_t hash = 1;
    for (const Address frame : area.group.entry.origin)
        hash = (hash ^ frame) * 0x2545f4914f6cdd1du;
    return hash;
}

model::Extent extent_of(const WatchedArea& area, int threads) {
    const std::uint64_t pages = area.there().size();
    const policy::PageRange there = area.there().span();
    if (pages != there.size() || !area.group.blocks.empty()) return {pages};
    const Range& array = area.group.entry.range;
    const auto granule = static_cast<double>(area.granule), first = static_cast<double>(there.first);
    double begin =
        static_cast<double>(static_cast<std::int64_t>(array.begin - area.origin)) / granule - first;
    double end = begin + static_cast<double>(array.bytes()) / granule;
    // What is used of it begins and ends with the pages that exist.
    if (there.first > 0) begin = std::max(begin, 0.0);
    if (there.end < area.granules) end = std::min(end, static_cast<double>(pages));
    model::Extent extent(pages, begin, end - begin);
    return pages == area.granules ? std::move(extent).with_blocks(blocks_of(area, threads)) : extent;
}

model::Users users_of(const AreaBelief& learnt, const PageSet& there) {
    model::Users users;
    users.reserve(learnt.users.known());
    std::uint64_t before = 0; // existing granules before the part
    there.for_each({0, there.span().end}, [&](policy::PageRange part) {
        learnt.users.for_each(part.first, part.end, [&](std::uint64_t granule, int node) {
            users.push_back(
                {before + (granule - part.first), static_cast<model::Node>(node), learnt.lead(granule)});
        });
        before += part.size();
    });
    return users;
}

SparsePrior sparse(const model::Prior& prior, const model::Formulas& formulas) {
    SparsePrior out;
    for (std::size_t i = 0; i < formulas.all().size(); ++i)
        if (prior.formula(i) > 0) out.formulas.emplace_back(static_cast<std::uint32_t>(i), prior.formula(i));
    for (std::size_t f = 0; f < model::families; ++f)
        out.families[f] = prior.other(static_cast<model::Family>(f));
    return out;
}

} // namespace homing
