// Ranges of an area on their way to the mover: they come in the order of their addresses, and go in one batch
// a node, so that nobody has to list an area's pages first.
#pragma once

#include "areas/watch.hpp"
#include "kernel/mover.hpp"

#include <vector>

namespace homing {

class Dispatch {
  public:
    /// Everything is added to `result`; where `deadline` (record::now()) passes, the rest stays
    /// (MoveResult::complete).
    Dispatch(Mover& mover, WatchedArea& area, int nodes, std::uint32_t round, double deadline,
             MoveResult& result)
        : mover_(mover), area_(area), round_(round), deadline_(deadline), result_(result),
          batches_(static_cast<std::size_t>(nodes)) {}

    /// These granules belong on the node at position `node`; those that lie on one of the nodes `from` go
    /// there. Left out: what was seen there before, would go back (AreaBelief), or was refused too often.
    void add(policy::PageRange granules, policy::Node node, policy::NodeSet from) {
        if (node < 0 || from == 0) return;
        Batch& batch = batches_[static_cast<std::size_t>(node)];
        if (batch.from != from) send(node);
        batch.from = from;
        while (granules.first < granules.end && result_.complete) {
            const std::uint64_t granule = granules.first++;
            if (area_.seen_homes.home(granule) == node || area_.learnt.goes_back(granule, node) ||
                !area_.refused.may_try(granule, round_))
                continue;
            batch.granules.push_back(granule);
            if (batch.granules.size() == most) send(node);
        }
    }

    /// Sends what is left.
    void finish() {
        for (std::size_t node = 0; node < batches_.size() && result_.complete; ++node)
            send(static_cast<policy::Node>(node));
    }

  private:
    static constexpr std::size_t most = 8192; ///< granules that wait for one node
    struct Batch {
        std::vector<std::uint64_t> granules;
        policy::NodeSet from = 0;
    };

    void send(policy::Node node) {
        Batch& batch = batches_[static_cast<std::size_t>(node)];
        if (batch.granules.empty()) return;
        mover_.send(area_, batch.granules, node, batch.from, round_, deadline_, result_);
        batch.granules.clear();
    }

    Mover& mover_;
    WatchedArea& area_;
    std::uint32_t round_;
    double deadline_;
    MoveResult& result_;
    std::vector<Batch> batches_; ///< by node
};

} // namespace homing
