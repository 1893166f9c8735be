// Which pages move for a phase: those of its trace that meet the competitive criterion, the most critical
// ones first (Nikolopoulos et al. 2000, sections 2 and 2.2). Pure.
#pragma once

#include "counters/trace.hpp"

#include <functional>
#include <vector>

namespace homing::counters {

struct PlannedMove {
    PageId page;
    policy::Node from = policy::unknown_node; ///< its home when the plan was made
    policy::Node to = policy::unknown_node;
    std::uint64_t local = 0;  ///< accesses from the home in the phase ...
    std::uint64_t remote = 0; ///< ... and from the node that it goes to
};

/// The order of the criterion: ratio of remote to local accesses, descending; of equal ones (all that nobody
/// at home accesses) more remote accesses, then the smaller page.
bool is_more_critical(const PlannedMove& one, const PlannedMove& other) noexcept;

/// All pages of which some other node makes more than `threshold` times as many accesses as the home, most
/// critical first. home: of a page, unknown_node where it has none; it stays out then.
std::vector<PlannedMove> eligible_moves(const Trace& trace, const std::function<policy::Node(PageId)>& home,
                                        double threshold);

/// The first `most` of them.
void keep_most_critical(std::vector<PlannedMove>& moves, std::size_t most);

/// Of a trace: all references, those that are remote by these homes, and by the homes of the plan.
struct Share {
    std::uint64_t references = 0;
    std::uint64_t remote = 0;
    std::uint64_t remote_with_plan = 0;
};
Share share_of(const Trace& trace, const std::function<policy::Node(PageId)>& home,
               const std::vector<PlannedMove>& plan);

} // namespace homing::counters
