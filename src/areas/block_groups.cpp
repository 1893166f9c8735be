#include "areas/block_groups.hpp"

#include <algorithm>

namespace homing {
namespace {

/// Fewer blocks than this, or larger ones, are sampled well enough one by one: arrays of a program, say, that
/// it allocates in a loop, and divides each among its threads.
constexpr std::size_t fewest_blocks = 32;
constexpr std::size_t largest_block = std::size_t{16} << 20;
/// Between blocks lie the allocator's headers, and what it rounds up. Whatever is further away may have
/// something else before it, which is not ours to move.
constexpr std::size_t widest_gap_pages = 2;

bool joins(const AreaEntry& entry) noexcept {
    return entry.kind == AreaKind::heap_block && !entry.name && entry.range.bytes() <= largest_block;
}

/// Does `next` go on from a group of which `first` and `last` are the ends so far?
bool continues(const AreaEntry& first, const AreaEntry& last, const AreaEntry& next) noexcept {
    const std::size_t a = first.range.bytes();
    const std::size_t b = next.range.bytes();
    return joins(next) && (a < b ? b - a : a - b) < page_bytes() && next.range.begin >= last.range.end &&
           next.range.begin - last.range.end <= widest_gap_pages * page_bytes() &&
           std::equal(first.origin, first.origin + kind_frames, next.origin);
}

BlockGroup join(const AreaEntry* first, const AreaEntry* end) {
    BlockGroup group{*first, {}};
    for (const AreaEntry* entry = first; entry != end; ++entry) {
        group.blocks.push_back(entry->range);
        group.entry.range.end = entry->range.end;
        group.entry.generation = std::max(group.entry.generation, entry->generation);
        // The group comes from where all of its blocks come from.
        const auto* differs =
            std::mismatch(std::begin(group.entry.origin), std::end(group.entry.origin), entry->origin).first;
        std::fill(group.entry.origin + (differs - group.entry.origin), std::end(group.entry.origin), 0);
    }
    return group;
}

/// Are the blocks of a group the entries from here on?
bool begins_with(const AreaEntry* entry, const AreaEntry* end, const BlockGroup& group) {
    const std::size_t count = group.blocks.size();
    if (static_cast<std::size_t>(end - entry) < count) return false;
    if (std::any_of(entry, entry + count, [](const AreaEntry& one) { return !joins(one); })) return false;
    return same_blocks(join(entry, entry + count), group);
}

} // namespace

bool same_blocks(const BlockGroup& a, const BlockGroup& b) noexcept {
    // A block that came since has a newer generation than all that were there.
    return a.entry.range.begin == b.entry.range.begin && a.entry.range.end == b.entry.range.end &&
           a.entry.generation == b.entry.generation &&
           std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(),
                      [](Range x, Range y) { return x.begin == y.begin && x.end == y.end; });
}

std::vector<BlockGroup> group_blocks(const std::vector<AreaEntry>& entries,
                                     const std::vector<const BlockGroup*>& known) {
    std::vector<BlockGroup> groups;
    const AreaEntry* const end = entries.data() + entries.size();
    auto old = known.begin();
    const auto stays = [&](const AreaEntry* at) {
        while (old != known.end() && (*old)->entry.range.begin < at->range.begin)
            ++old;
        return old != known.end() && !(*old)->blocks.empty() &&
               (*old)->entry.range.begin == at->range.begin && begins_with(at, end, **old);
    };
    for (const AreaEntry* at = entries.data(); at != end;) {
        const AreaEntry* next = at + 1;
        bool group = stays(at);
        if (group) {
            next = at + (*old)->blocks.size();
        } else if (joins(*at)) {
            while (next != end && continues(*at, *(next - 1), *next) && !stays(next))
                ++next;
            group = static_cast<std::size_t>(next - at) >= fewest_blocks;
        }
        if (group)
            groups.push_back(join(at, next));
        else
            for (const AreaEntry* entry = at; entry != next; ++entry)
                groups.push_back({*entry, {}});
        at = next;
    }
    return groups;
}

} // namespace homing
