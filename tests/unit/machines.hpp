// Machines for tests.
#pragma once

#include "machine/machine.hpp"

namespace homing {

/// So many nodes, each with a CPU and a gibibyte.
inline Machine machine_of(int count, std::uint64_t cache_bytes = 0) {
    Machine machine;
    for (int i = 0; i < count; ++i) {
        Node node;
        node.index = i;
        node.cpus = 1;
        node.memory_bytes = std::uint64_t{1} << 30;
        machine.nodes.push_back(node);
    }
    machine.last_level_cache_bytes = cache_bytes;
    machine.source = "test";
    return machine;
}

} // namespace homing
