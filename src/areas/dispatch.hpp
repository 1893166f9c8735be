// Ranges of an area on their way to the mover: they come in the order of their addresses, and go in one batch
// a node, so that nobody has to list an area's pages first.
#pragma once

#include "areas/watch.hpp"
#include "kernel/mover.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <cstdint>
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
            if (++looked_ % looks_between_clocks == 0 && record::now() > deadline_) {
                result_.complete = false;
                leave(granule);
                return;
            }
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

    /// Where the deadline passed: the first granule that may have to be added again.
    std::uint64_t first_left() const {
        std::uint64_t first = first_left_;
        for (const Batch& batch : batches_)
            if (!batch.granules.empty()) first = std::min(first, batch.granules.front());
        return first;
    }

  private:
    static constexpr std::size_t most = 8192; ///< granules that wait for one node
    /// What is at home already is passed over at some tenths of a microsecond each: so many are no pause.
    static constexpr std::uint64_t looks_between_clocks = 1 << 14;
    struct Batch {
        std::vector<std::uint64_t> granules;
        policy::NodeSet from = 0;
    };

    void send(policy::Node node) {
        Batch& batch = batches_[static_cast<std::size_t>(node)];
        if (batch.granules.empty()) return;
        mover_.send(area_, batch.granules, node, batch.from, round_, deadline_, result_);
        if (!result_.complete) leave(batch.granules.front());
        batch.granules.clear();
    }
    void leave(std::uint64_t granule) { first_left_ = std::min(first_left_, granule); }

    Mover& mover_;
    WatchedArea& area_;
    std::uint32_t round_;
    double deadline_;
    MoveResult& result_;
    std::vector<Batch> batches_; ///< by node
    std::uint64_t looked_ = 0;
    std::uint64_t first_left_ = ~std::uint64_t{0};
};

} // namespace homing
