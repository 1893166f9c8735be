// Memory in which pages may move by counters: the areas that the program has registered as hot; all of it
// where there is none.
#pragma once

#include "areas/watch.hpp"

#include <vector>

namespace homing::counters {

class HotMemory {
  public:
    HotMemory();
    bool has(const WatchedArea& area, std::uint64_t granule) const;

  private:
    std::vector<Range> ranges_;
};

} // namespace homing::counters
