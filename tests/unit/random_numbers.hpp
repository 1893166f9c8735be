// Numbers that look random and are the same in every run: for tests whose seed rapidcheck shrinks.
#pragma once

#include "base/random.hpp"

#include <cstdint>

namespace homing::testing {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() { return mixed(state_ += splitmix_step); }
    std::uint64_t below(std::uint64_t limit) { return next() % limit; }
    /// In [0, 1).
    double uniform() { return fraction_of(next()); }

  private:
    std::uint64_t state_;
};

} // namespace homing::testing
