// The watched ranges of a source: which one an address lies in.
#pragma once

#include "base/find_range.hpp"
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
        return find_range(ranges_, address, &WatchedRange::range) != nullptr;
    }

  private:
    std::vector<WatchedRange> ranges_;
};

} // namespace homing
