// What is to be done with the pages of an area, from its samples, where they lie now, and who was inferred to
// own them: nothing is done here.
#pragma once

#include "mechanisms/watch.hpp"
#include "policy/competitive.hpp"
#include "policy/ownership.hpp"

#include <functional>
#include <vector>

namespace homing {

class Engine;

struct Judgement {
    WatchedArea* area = nullptr;
    // Estimates over all granules: a sample stands for the granules up to half-way to its neighbours.
    double considered = 0; ///< granules whose owner and home are known
    double misplaced = 0;  ///< of them, those that would be nearer to their users elsewhere
    double squares = 0;    ///< of the samples' weights: they are worth considered^2 / squares equal samples
    /// Granules of the node that serves most of them, now and after the moves.
    double busiest_now = 0;
    double busiest_then = 0;
    /// By run: pages that lie on these nodes go where the run's pattern says.
    std::vector<policy::NodeSet> from;
    /// Granules that go by what was seen of them alone.
    std::vector<policy::Candidate> single;
    /// Owners told by writes, which break the tie between those who use shared pages; by_writer: there are
    /// some.
    policy::Ownership written;
    bool by_writer = false;
    std::uint64_t looks = 0; ///< granules that have to be asked for where they are
    /// Something seems to be misplaced of which too little was seen to tell.
    bool doubtful = false;

    /// Visits what is to move, of what exists: visit(PageRange granules, node, nodes that they may leave), in
    /// order of address within each run.
    void
    for_each_move(const std::function<void(policy::PageRange, policy::Node, policy::NodeSet)>& visit) const;
};

/// threshold: of the competitive criterion, where no pattern tells a page's owner (Nikolopoulos et al. 2000,
/// section 2). What was refused twice or is frozen is not misplaced: it stays.
Judgement judge(Engine& engine, WatchedArea& area, double threshold);

/// Does one of these fresh samples of an area whose owners did not change show a page that is misplaced
/// beyond doubt? Somebody else may have moved it.
bool misplaced_since(Engine& engine, WatchedArea& area, const policy::Samples& fresh);

/// Records where the fresh references went (references rows).
void record_references(Engine& engine, WatchedArea& area, const policy::Samples& fresh);

} // namespace homing
