// Which region ran when. A source that samples by itself tells the time of a reference, and is asked for it
// later, when other regions have run.
#pragma once

#include "model/touches.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ranges>

namespace homing {

class RegionLog {
  public:
    /// Changes that are remembered: some iterations of a program of hundreds of regions.
    static constexpr std::size_t capacity = 4096;
    static constexpr std::uint32_t nowhere = model::Touches::nowhere;

    /// From `now` on (seconds, never falling) this region runs, or what follows this barrier; nowhere: serial
    /// code.
    void enter(std::uint32_t region, double now) noexcept {
        changes_[count_++ % capacity] = {std::max(now, newest_), region};
        newest_ = std::max(now, newest_);
    }
    /// What ran then; nowhere where that is not known any more.
    std::uint32_t at(double time) const noexcept {
        const auto known = std::views::iota(count_ - std::min(count_, capacity), count_);
        const auto after = std::ranges::partition_point(
            known, [&](std::size_t change) { return changes_[change % capacity].time <= time; });
        return after == known.begin() ? nowhere : changes_[*(after - 1) % capacity].region;
    }

  private:
    struct Change {
        double time;
        std::uint32_t region;
    };
    std::array<Change, capacity> changes_{};
    std::size_t count_ = 0; ///< so far
    double newest_ = 0;
};

} // namespace homing
