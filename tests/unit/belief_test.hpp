// What the tests of the belief ask it.
#pragma once

#include "model/belief.hpp"

#include <algorithm>

namespace homing::model {

inline Node likeliest_node(const Belief& belief, std::uint64_t page) {
    Prospect prospect;
    belief.prospect(page, unknown_node, prospect);
    return static_cast<Node>(std::ranges::max_element(prospect.best) - prospect.best.begin());
}

} // namespace homing::model
