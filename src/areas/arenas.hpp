// The allocator's memory that small blocks share, as areas of pages: rows of a matrix, particles, nodes of
// lists, in the heap or in arenas that the allocator has mapped. Such an area is named after the place that
// most of its blocks come from. Engine's thread only.
#pragma once

#include "areas/block_cover.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace homing {

class Arenas {
  public:
    explicit Arenas(const BlockCover& cover) noexcept : cover_(cover) {}

    /// Has so much come or gone since the last look() that another one is worth it?
    bool has_changed() const noexcept;
    /// Finds the runs of at least `smallest` bytes that blocks cover.
    void look(std::size_t smallest);
    /// What is left of them beside `others` (ascending by address, whose memory is theirs), as areas of at
    /// least `smallest` bytes, ascending. One of `known` (ascending) that still stands for what there is,
    /// stays as it is: a program allocates and frees all the time, and what was learnt of the pages is as
    /// good as it was.
    std::vector<AreaEntry> areas(std::span<const AreaEntry> others, std::span<const AreaEntry> known,
                                 std::size_t smallest);

  private:
    const BlockCover& cover_;
    std::uint64_t seen_churn_ = 0;
    std::uint64_t covered_ = 0; ///< bytes, of all runs at the last look
    std::vector<CoveredRun> runs_;
    std::uint64_t generation_ = 0;
};

} // namespace homing
