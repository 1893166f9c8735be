// The watched ranges of a source: which one an address lies in.
#pragma once

#include "sources/references.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace homing {

class WatchedRanges {
  public:
    /// Ascending and disjoint.
    void assign(std::span<const WatchedRange> ranges) { ranges_.assign(ranges.begin(), ranges.end()); }
    void clear() { ranges_.clear(); }
    bool empty() const noexcept { return ranges_.empty(); }
    std::span<const WatchedRange> all() const noexcept { return ranges_; }

    bool contains(Address address) const noexcept {
        const auto after =
            std::upper_bound(ranges_.begin(), ranges_.end(), address,
                             [](Address a, const WatchedRange& w) { return a < w.range.begin; });
        return after != ranges_.begin() && std::prev(after)->range.contains(address);
    }

  private:
    std::vector<WatchedRange> ranges_;
};

} // namespace homing
