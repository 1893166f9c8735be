// What is to be done with the pages of an area, from what is believed of its owners and where its pages lie
// now: nothing is done here.
#pragma once

#include "areas/watch.hpp"
#include "base/nodes.hpp"

#include <functional>

namespace homing {

class Engine;

struct Judgement {
    WatchedArea* area = nullptr;
    // Estimates over all granules that exist, from some that were looked at.
    double considered = 0; ///< granules that have a home
    double misplaced = 0;  ///< of them, those that belong elsewhere
    double held = 0;       ///< of them, those that only where they came from is better for
    double gain = 0;       ///< the sum of what these would gain by it: shares of their touches
    /// Granules of the node that serves most of them, now and after the moves.
    double busiest_now = 0;
    double busiest_then = 0;
    bool spreads = false;    ///< what all nodes use lies unevenly
    std::uint64_t looks = 0; ///< granules that have to be asked for where they are
    double threshold = 0;    ///< of the competitive criterion
    /// Is it as old as the belief, and have no pages moved since? Then it is as good as a new one.
    bool holds(const WatchedArea& of) const noexcept {
        return fits == of.learnt.fits && taken == of.learnt.taken && pages == of.there().size();
    }

    /// Visits what is to move, of what exists: visit(granules, node, nodes that they may leave), ascending
    /// from where the last pause ended; until it returns false.
    void
    for_each_move(const std::function<bool(policy::PageRange, policy::Node, policy::NodeSet)>& visit) const;

    // What it was made from.
    std::uint64_t fits = 0, taken = 0, pages = 0;
    /// Where every granule was looked at: those that are to move, ascending.
    struct Move {
        policy::PageRange granules;
        policy::Node to;
        policy::NodeSet from;
    };
    std::vector<Move> moves;
    bool is_whole = false; ///< every granule was
};

/// The area has a belief. Remembers in it how much a touch more would tell (AreaBelief::ignorance).
/// looks: granules that are looked at. threshold: of the competitive criterion (model::better_home).
Judgement judge(Engine& engine, WatchedArea& area, std::uint64_t looks, double threshold);

/// The node that a granule most likely belongs on.
policy::Node owner_of(const WatchedArea& area, std::uint64_t granule);

} // namespace homing
