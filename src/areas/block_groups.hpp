// Matrices are often allocated row by row, trees and lists node by node: hundreds of heap blocks, each too
// small to be told the owners of from its own samples. Blocks of one origin and one size that lie side by
// side are one area: its owners are inferred from samples of all of them.
#pragma once

#include "areas/areas.hpp"

#include <vector>

namespace homing {

/// One area to be: a single entry of the registry, or many blocks.
struct BlockGroup {
    /// Of blocks: from the first one's begin to the last one's end, with the generation of the newest.
    AreaEntry entry;
    std::vector<Range> blocks; ///< ascending; empty for a single entry
};

/// Two areas with the same blocks?
bool same_blocks(const BlockGroup& a, const BlockGroup& b) noexcept;

/// The entries (ascending by address) as areas, those blocks put together that belong together. `known` are
/// the groups (ascending) that are watched: one whose blocks are all still there stays as it is, so that a
/// program that allocates one more block at a time does not begin anew with each.
std::vector<BlockGroup> group_blocks(const std::vector<AreaEntry>& entries,
                                     const std::vector<const BlockGroup*>& known);

} // namespace homing
