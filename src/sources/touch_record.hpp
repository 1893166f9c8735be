// Single touches, and where every page lies, for the record: what a learner was shown, so that another one
// can be shown the same (benchmarks/replay.cpp), and what the report draws. Off unless --record-samples asks
// for them.
#pragma once

#include "areas/watch.hpp"
#include "sources/references.hpp"

#include <cstdint>
#include <span>

namespace homing {

/// Where the program was when it touched.
struct TouchPlace {
    std::uint32_t region = 0;    ///< id of the region row
    std::uint32_t place = 0;     ///< in the iteration; ~0: not known
    std::uint32_t iteration = 0; ///< number of the outer iteration
};

class TouchRecord {
  public:
    /// At most so many rows of touches are written; 0: none, and no homes either.
    explicit TouchRecord(std::uint64_t most) : left_(most), enabled_(most > 0) {}

    bool enabled() const noexcept { return enabled_; }
    /// One touch, by a thread on the node at `position`. source: 1 pmu, 2 hint-faults, 3 windows.
    void touch(WatchList& watch, const WatchedArea& area, const Reference& reference, int position,
               const TouchPlace& where, std::uint32_t source, double now);
    /// Where each granule of the area lies: homes by position, -1 where it does not exist; in runs. when: as
    /// in placement rows.
    void homes(const WatchedArea& area, std::span<const int> positions, std::uint32_t when, double now) const;
    /// Granules of an area whose homes are recorded; of larger areas none are.
    static constexpr std::uint64_t most_granules = std::uint64_t{1} << 20;

  private:
    std::uint64_t left_;
    bool enabled_;
};

} // namespace homing
