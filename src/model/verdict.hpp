// Which pages should lie elsewhere, from what is believed of an area and where its pages lie. Pure: whether a
// move pays is the guard's question (model/guard), and whether the kernel makes it the mover's.
#pragma once

#include "model/belief.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace homing::model {

/// Pages [first, end) that lie on one node (unknown_node: not populated, or not known).
struct HomeRun {
    policy::PageRange pages;
    Node node = unknown_node;
};

/// Pages that should move to one node, and the share of their touches that would become local by it, 0..1.
struct Move {
    policy::PageRange pages;
    Node from, to;
    double gain;
};

struct Verdict {
    std::vector<Move> moves;               ///< ascending
    std::vector<policy::PageRange> spread; ///< used by all nodes alike: they belong evenly on all of them
    double local_now = 0;                  ///< expected share of local touches where the pages lie now, 0..1
    double local_then = 0;                 ///< the same after the moves
    std::uint64_t pages = 0;               ///< that exist, and were judged
};

/// The node that a page should lie on instead of `home`, or unknown_node where it should stay. It moves where
/// it is likelier to belong there than here by tuning::least_lead, and so much more of its touches would be
/// local as tuning::least_gain; and where `threshold` times as many touches would come from there as from
/// here (the competitive criterion, Nikolopoulos et al. 2000, section 2).
Node better_home(const Prospect& prospect, Node home, double threshold = 0);
/// Do all nodes use the page alike?
bool is_spread(const Prospect& prospect);

/// Where pages should lie: those of [first, end) that lie on one of the nodes `from` go to `to`. All alike
/// used by all nodes: `spread`, and `to` is nothing.
struct Wish {
    policy::PageRange pages;
    Node to = unknown_node;
    policy::NodeSet from = 0;
    bool spread = false;
};

/// Visits, ascending, what should be elsewhere wherever it lies now: for callers who find out where pages lie
/// as they move them. visit returns whether to go on. As judge(), linear in the stretches, times the nodes.
void for_each_wish(const Belief& belief, double threshold, const std::function<bool(const Wish&)>& visit);

/// What knowing all owners would add to the share of local touches once the moves of judge() are made, of an
/// area whose pages lie as `homes` says: estimated from some pages, in constant time.
double estimate_ignorance(const Belief& belief, std::span<const HomeRun> homes);

/// homes: ascending and disjoint, within the area. Linear in the stretches of the belief, which may be as
/// many as the pages (CYCLIC).
Verdict judge(const Belief& belief, std::span<const HomeRun> homes);

} // namespace homing::model
