// The parallel regions seen so far: a dense index for each outlined function, how often and how long it ran.
#pragma once

#include "base/pages.hpp"
#include "base/random.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace homing {

struct RegionInfo {
    Address function = 0;
    bool is_barrier = false;
    std::uint64_t count = 0;          ///< all entries
    std::uint64_t timed = 0;          ///< entries that were timed
    double seconds = 0;               ///< of the timed ones
    double longest = 0;               ///< seconds of the longest of late
    std::uint32_t in_iteration = 0;   ///< entries in the current iteration
    std::uint32_t last_iteration = 0; ///< entries in the iteration before

    void took(double time) noexcept {
        seconds += time;
        longest = std::max(time, fading * longest);
        ++timed;
    }
    static constexpr double fading = 0.95; ///< an entry that was held up is forgotten
};

/// Open addressing over a fixed table: index() is called at every region.
class RegionTable {
  public:
    static constexpr std::size_t capacity = 4096; ///< beyond that all further functions share the last index

    RegionTable() {
        slots_.fill(0);
        regions_.reserve(64);
    }

    std::uint32_t index(Address function, bool barrier = false) {
        std::size_t at = table_place(function, 13);
        for (;; at = (at + 1) % slots_.size()) {
            const std::uint32_t slot = slots_[at];
            if (slot == 0) break;
            if (regions_[slot - 1].function == function) return slot - 1;
        }
        if (regions_.size() == capacity) return capacity - 1;
        RegionInfo info;
        info.function = function;
        info.is_barrier = barrier;
        regions_.push_back(info);
        slots_[at] = static_cast<std::uint32_t>(regions_.size());
        return slots_[at] - 1;
    }
    RegionInfo& operator[](std::uint32_t index) { return regions_[index]; }
    const std::vector<RegionInfo>& all() const noexcept { return regions_; }
    void iteration_ended() noexcept {
        for (RegionInfo& region : regions_) {
            region.last_iteration = region.in_iteration;
            region.in_iteration = 0;
        }
    }

  private:
    std::array<std::uint32_t, 2 * capacity> slots_;
    std::vector<RegionInfo> regions_;
};

/// The places of the followed iteration: one function may be entered for grids of several sizes, and what its
/// regions do and take differs by where in the iteration they are.
class PlaceTable {
  public:
    static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

    /// The region at this position of an iteration of `period` regions begins (0: none is followed). Its
    /// number is one that no place of another iteration had lately.
    std::uint32_t enter(std::uint32_t period, std::uint32_t position) {
        if (period != period_) {
            period_ = period;
            ++generation_;
            times_.assign(period, {});
        }
        at_ = period ? position : nowhere;
        return period ? generation_ * most_places + position % most_places : nowhere;
    }
    /// It took so long.
    void timed(double seconds) {
        if (at_ >= times_.size()) return;
        times_[at_].seconds += seconds;
        ++times_[at_].count;
        at_ = nowhere;
    }
    /// What the region that was entered last takes on average; 0 where it is not known.
    double mean_seconds() const noexcept {
        if (at_ >= times_.size() || times_[at_].count == 0) return 0;
        return times_[at_].seconds / times_[at_].count;
    }

  private:
    static constexpr std::uint32_t most_places = 1u << 16;
    struct Time {
        double seconds = 0;
        std::uint32_t count = 0;
    };
    std::uint32_t period_ = 0;
    std::uint32_t generation_ = 0;
    std::uint32_t at_ = nowhere;
    std::vector<Time> times_;
};

} // namespace homing
