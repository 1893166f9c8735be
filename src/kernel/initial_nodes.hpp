// Where pages lie before anything is known of them: the initial placements of the UPMlib paper (Nikolopoulos
// et al. 2000, section 3.1) that are functions of the page. First touch needs no function.
#pragma once

#include <cstdint>

#include "base/nodes.hpp"

namespace homing::policy {

// In turn over the targets; unknown_node if there are none.
Node round_robin_node(std::uint64_t page, NodeSet targets);
// Uniform, and a function of seed and page only; unknown_node if there are no targets.
Node random_node(std::uint64_t page, NodeSet targets, std::uint64_t seed);

} // namespace homing::policy
