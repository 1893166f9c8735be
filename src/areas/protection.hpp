// Which parts of a range may be protected and given back without harm: private, readable and writable
// mappings. What the program itself mapped otherwise (guard pages, read-only or shared parts) is not ours to
// change.
#pragma once

#include "base/pages.hpp"

#include <span>
#include <vector>

namespace homing {

/// The parts of the ranges (ascending, disjoint) that lie in private read-write mappings of this process,
/// from /proc/self/maps. Empty where that cannot be read.
std::vector<Range> private_writable(std::span<const Range> ranges);

} // namespace homing
