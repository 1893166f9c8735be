// Nodes as the model sees them (0..N-1) and as the kernel does (sparse).
#pragma once

#include "kernel/kernel.hpp"

#include <array>
#include <cstddef>
#include <vector>

namespace homing {

class NodeMap {
  public:
    /// `targets`: the nodes that pages may be sent to (Machine::targets).
    explicit NodeMap(NodeSet targets) {
        position_.fill(-1);
        for (int node = 0; node < max_nodes; ++node) {
            if (!targets.has(node)) continue;
            position_[static_cast<std::size_t>(node)] = count();
            system_.push_back(node);
        }
    }
    int count() const noexcept { return static_cast<int>(system_.size()); }
    int system(int position) const noexcept { return system_[static_cast<std::size_t>(position)]; }
    /// -1 for a node that is not a target.
    int position(int system_node) const noexcept {
        return system_node >= 0 && system_node < max_nodes ? position_[static_cast<std::size_t>(system_node)]
                                                           : -1;
    }

  private:
    std::vector<int> system_;
    std::array<int, max_nodes> position_{};
};

} // namespace homing
