// Reference counters of the hot memory, page by page, and the moves that the competitive criterion makes of
// them (Nikolopoulos et al. 2000, section 2). Within Engine::guarded().
#pragma once

#include "counters/hot_memory.hpp"
#include "counters/page_counts.hpp"
#include "engine/engine.hpp"

#include <cstdint>
#include <vector>

namespace homing::counters {

/// What became of pages that were looked at.
struct Outcome {
    std::uint64_t accessed = 0; ///< pages that had been accessed since they were looked at before
    std::uint64_t eligible = 0; ///< ... that met the criterion
    std::uint64_t moved = 0;    ///< base pages
    std::uint64_t frozen = 0;   ///< pages that went to and fro, or were refused again and again
    void add(const Outcome& other) noexcept {
        accessed += other.accessed;
        eligible += other.eligible;
        moved += other.moved;
        frozen += other.frozen;
    }
};

class CountedPages {
  public:
    CountedPages(int nodes, double threshold) : threshold_(threshold), counts_(nodes) {}

    /// What the source has just seen (Engine::references), into the counters.
    void take(Engine& engine);
    /// Areas that are not watched any more.
    void forget_gone(Engine& engine);
    /// Would a reference of the page tell anything? None is counted yet, and it may move.
    bool wants_references(const WatchedArea& area, std::uint64_t granule) const;
    /// Is there anything to decide about the page? What is frozen stays.
    bool is_due(const WatchedArea& area, std::uint64_t granule);
    /// Those of the area's granules (ascending) that meet the criterion go to the node that accesses them
    /// most, and their counting begins anew.
    Outcome decide(Engine& engine, WatchedArea& area, const std::vector<std::uint64_t>& granules);

  private:
    double threshold_;
    PageCounts counts_;
};

} // namespace homing::counters
