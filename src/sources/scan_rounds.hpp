// Where references come as a scan goes through memory (ReferenceSource::scans), one area is seen now and
// another much later, whatever the program does. An area of which the scan has shown little is not unused, or
// at home, until it has come round: until it has shown everything else once more.
#pragma once

#include "areas/watch.hpp"

#include <algorithm>
#include <cstdint>

namespace homing {

/// From this share of its granules on enough was seen of an area.
inline constexpr double enough_covered = 0.5;
/// Something new is more than so many times what was known.
inline constexpr double still_growing = 1.05;

class ScanRounds {
  public:
    /// A reference came, to a granule that was touched before or not.
    void saw(const WatchedArea& area, std::uint64_t granule) {
        revisited_ += area.learnt.users.home(granule) >= 0;
    }

    /// A round of observation ends (its references are not learnt yet). Returns the granules of
    /// the areas that the scan still has to come to.
    std::uint64_t round_ended(const WatchList& watch) {
        std::uint64_t known = 0;
        for (const auto& area : watch.areas())
            known += area->learnt.users.known();
        std::uint64_t to_come = 0;
        for (const auto& area : watch.areas()) {
            const auto seen = static_cast<double>(area->learnt.users.known());
            if (seen > still_growing * static_cast<double>(area->shown)) {
                area->shown = area->learnt.users.known();
                area->passed_by = 0;
            }
            area->passed_by += revisited_;
            if (area->found_granules > 0 && seen < enough_covered * static_cast<double>(area->granules) &&
                area->passed_by <= known)
                to_come += area->granules;
        }
        revisited_ = 0;
        return to_come;
    }

  private:
    std::uint64_t revisited_ = 0; ///< references of this round to granules that were known before
};

} // namespace homing
