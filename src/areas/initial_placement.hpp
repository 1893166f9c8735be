// The four initial placements of the UPMlib paper (Nikolopoulos et al. 2000, section 3.1), for experiments:
// pages lie where the experiment wants them before anything is learnt about who uses them.
#pragma once

#include "areas/watch.hpp"
#include "base/nodes.hpp"
#include "kernel/kernel.hpp"
#include "kernel/mover.hpp"

#include <string>
#include <vector>

namespace homing {

class InitialPlacement {
  public:
    /// targets: the nodes that pages to come may lie on.
    InitialPlacement(Kernel& kernel, const NodeMap& nodes, Mover& mover, NodeSet targets);

    /// As Option::initial names it.
    const std::string& wanted() const noexcept { return wanted_; }
    /// Every area once, whenever it came: what is populated moves, and pages to come land by policy. Random
    /// placement has no policy: what is populated later is placed when it is seen, ever more seldom, until
    /// all is, or the mechanism sends the area's pages home.
    void place(WatchList& watch, std::uint32_t iteration);

  private:
    bool is_due(const WatchedArea& area, std::uint32_t iteration) const noexcept;
    void bind(const WatchedArea& area);
    policy::Node node_of(const WatchedArea& area, std::uint64_t granule) const noexcept;
    void send(WatchedArea& area, std::uint32_t iteration);
    bool take_populated(WatchedArea& area, std::vector<std::uint64_t>& granules);

    Kernel& kernel_;
    const NodeMap& nodes_;
    Mover& mover_;
    NodeSet targets_;
    policy::NodeSet all_;
    std::string wanted_;
    bool idle_; ///< first touch: the program's own placement stays
    bool random_;
    std::uint64_t seed_;
};

} // namespace homing
