#include "kernel/initial_nodes.hpp"

#include "base/random.hpp"

namespace homing::policy {

Node round_robin_node(std::uint64_t page, NodeSet targets) { return nth_node(targets, page); }

Node random_node(std::uint64_t page, NodeSet targets, std::uint64_t seed) {
    const std::uint64_t z = mixed(seed + (page + 1) * splitmix_step); // a hash of (seed, page)
    const auto count = static_cast<std::uint64_t>(size_of(targets));
    return nth_node(targets, ((z >> 32) * count) >> 32);
}

} // namespace homing::policy
