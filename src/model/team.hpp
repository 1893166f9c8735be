// The threads of a parallel team and the nodes that they run on. A distribution says which thread owns what;
// only the team says where that is. So what was learnt survives a rebinding.
#pragma once

#include "base/nodes.hpp"

#include <cstdint>
#include <vector>

namespace homing::model {

using policy::Node;
using policy::unknown_node;

class Team {
  public:
    /// node_of: for each thread a node in [0, nodes). At least one thread.
    Team(std::vector<Node> node_of, int nodes);
    /// Consecutive threads share a node, as OMP_PROC_BIND=close binds them. threads is a multiple of nodes.
    static Team packed(int threads, int nodes);

    int threads() const noexcept { return static_cast<int>(node_of_.size()); }
    int nodes() const noexcept { return nodes_; }
    Node node(int thread) const noexcept { return node_of_[static_cast<std::size_t>(thread)]; }
    /// How many threads run on a node.
    int threads_on(Node node) const noexcept { return threads_on_[static_cast<std::size_t>(node)]; }

    /// May groups of so many consecutive threads stand for their threads: does each lie on one node?
    bool can_group(int size) const noexcept;
    /// The team of these groups. can_group(size) must hold.
    Team grouped(int size) const;

    friend bool operator==(const Team&, const Team&) = default;

  private:
    std::vector<Node> node_of_;
    std::vector<int> threads_on_;
    int nodes_;
};

} // namespace homing::model
