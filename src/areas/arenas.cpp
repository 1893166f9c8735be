#include "areas/arenas.hpp"

#include <algorithm>

namespace homing {
namespace {

/// So much of what is covered must have come or gone, in all, before it is looked at anew.
constexpr std::uint64_t news = 16;
constexpr std::uint64_t least_news = std::uint64_t{64} << 10;
/// Holes of so many bytes belong to what is around them: blocks that were freed, metadata of an allocator.
constexpr std::size_t widest_gap = std::size_t{64} << 10;
/// An area that differs from what there is by less than this part is still the same.
constexpr std::size_t same_within = 8;

bool stands_for(Range known, Range now) {
    const auto apart = [](Address a, Address b) { return a < b ? b - a : a - b; };
    return (apart(known.begin, now.begin) + apart(known.end, now.end)) * same_within <= now.bytes();
}

} // namespace

bool Arenas::has_changed() const noexcept {
    return cover_.churn() - seen_churn_ >= std::max(least_news, covered_ / news);
}

void Arenas::look(std::size_t smallest) {
    seen_churn_ = cover_.churn();
    runs_.clear();
    cover_.runs(smallest, widest_gap, runs_);
    covered_ = 0;
    for (const CoveredRun& run : runs_)
        covered_ += run.covered;
}

std::vector<AreaEntry> Arenas::areas(std::span<const AreaEntry> others, std::span<const AreaEntry> known,
                                     std::size_t smallest) {
    std::vector<AreaEntry> found;
    auto other = others.begin();
    auto old = known.begin();
    const auto add = [&](Range part, const CoveredRun& run) {
        part = whole_pages(part);
        if (part.bytes() < smallest) return;
        AreaEntry entry;
        entry.range = part;
        entry.kind = AreaKind::arena;
        std::copy_n(cover_.sites().origin(run.site), max_origin_frames, entry.origin);
        while (old != known.end() && old->range.end <= part.begin)
            ++old;
        // Where it also overlaps the next one it does not: that may have taken its place.
        const bool free_behind =
            other == others.end() || old == known.end() || old->range.end <= other->range.begin;
        const Address behind = found.empty() ? 0 : found.back().range.end;
        if (old != known.end() && stands_for(old->range, part) && free_behind && behind <= old->range.begin &&
            (other == others.begin() || (other - 1)->range.end <= old->range.begin)) {
            entry.range = old->range;
            entry.generation = old->generation;
            std::copy(std::begin(old->origin), std::end(old->origin), entry.origin);
        } else {
            entry.generation = ++generation_;
        }
        found.push_back(entry);
    };
    for (const CoveredRun& run : runs_) {
        Address at = std::max(run.range.begin, found.empty() ? 0 : found.back().range.end);
        while (other != others.end() && other->range.end <= at)
            ++other;
        for (; other != others.end() && other->range.begin < run.range.end; ++other) {
            add({at, std::max(at, other->range.begin)}, run);
            at = std::max(at, other->range.end);
        }
        add({at, std::max(at, run.range.end)}, run);
    }
    return found;
}

} // namespace homing
