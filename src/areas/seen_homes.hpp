// Where the granules of an area were when the kernel was last asked, so that those already sent home are not
// asked about again at each move.
#pragma once

#include "areas/granule_homes.hpp"

namespace homing {

class SeenHomes {
  public:
    /// What was seen is believed for so many rounds: others may move pages, too.
    static constexpr std::uint32_t believed_rounds = 32;

    /// A new round (a counter that never falls), in an area of so many granules. `placements`: how often the
    /// program had pages placed otherwise so far (Engine::placements).
    void begin_round(std::uint32_t round, std::uint32_t placements, std::uint64_t granules) {
        if (homes_.has_room() && round - since_ < believed_rounds && placements == placements_) return;
        since_ = round;
        placements_ = placements;
        homes_.reset(granules);
    }

    /// The granules from `first` to before `end` were at this position.
    void saw(std::uint64_t first, std::uint64_t end, int position) { homes_.set(first, end, position); }

    /// Position of the node, or -1: not known.
    int home(std::uint64_t granule) const noexcept { return homes_.home(granule); }

    /// Of how many granules it is known.
    std::uint64_t known() const noexcept { return homes_.known(); }

    /// Pages were moved by somebody else.
    void forget() noexcept { homes_.forget(); }

  private:
    GranuleHomes homes_;
    std::uint32_t since_ = 0;
    std::uint32_t placements_ = 0;
};

} // namespace homing
