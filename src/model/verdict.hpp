// Which pages should lie elsewhere, from what is believed of an area and where its pages lie. Pure: whether a
// move pays is the guard's question (model/guard), and whether the kernel makes it the mover's.
#pragma once

#include "model/belief.hpp"

#include <functional>

namespace homing::model {

/// The node that a page should lie on instead of `home`, or unknown_node where it should stay. It moves where
/// it is likelier to belong there than here by tuning::least_lead, more of its touches would be local, and
/// `threshold` times as many touches would come from there as from here (the competitive criterion,
/// Nikolopoulos et al. 2000, section 2).
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

/// Visits, ascending from page `first`, what should be elsewhere wherever it lies now: for callers who find
/// out where pages lie as they move them. visit returns whether to go on. Linear in the stretches of the
/// belief, which may be as many as the pages (CYCLIC), times the nodes.
void for_each_wish(const Belief& belief, std::uint64_t first, double threshold,
                   const std::function<bool(const Wish&)>& visit);

} // namespace homing::model
