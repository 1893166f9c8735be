#include "model/verdict.hpp"

#include <algorithm>
#include <vector>

namespace homing::model {

Node better_home(const Prospect& prospect, Node home, double threshold) {
    if (home < 0 || prospect.is_beyond) return unknown_node;
    const auto here = static_cast<std::size_t>(home);
    const auto best =
        static_cast<std::size_t>(std::ranges::max_element(prospect.best) - prospect.best.begin());
    // A home that is no node of the team: somebody put the page there, and nothing is used from it.
    if (here >= prospect.best.size()) return unknown_node;
    const bool likelier = prospect.best[best] - prospect.best[here] > tuning::least_lead;
    const bool criterion = prospect.local[best] > std::max(threshold, 1.0) * prospect.local[here];
    return likelier && criterion ? static_cast<Node>(best) : unknown_node;
}

bool is_spread(const Prospect& prospect) { return prospect.spread > tuning::certain && !prospect.is_beyond; }

void for_each_wish(const Belief& belief, std::uint64_t first, double threshold,
                   const std::function<bool(const Wish&)>& visit) {
    Prospect prospect;
    const auto count = static_cast<std::size_t>(belief.nodes());
    std::vector<policy::NodeSet> from(count);
    for (std::uint64_t page = first; page < belief.pages();) {
        const std::uint64_t end = belief.stretch_end(page);
        belief.prospect(page + (end - page) / 2, unknown_node, prospect);
        if (is_spread(prospect)) {
            if (!visit({{page, end}, unknown_node, policy::all_nodes(belief.nodes()), true})) return;
        } else {
            std::ranges::fill(from, policy::NodeSet{0});
            for (std::size_t home = 0; home < count; ++home) {
                const double best = prospect.best[home], local = prospect.local[home];
                prospect.best[home] += prospect.of_home;
                prospect.local[home] += prospect.local_of_home;
                if (const Node to = better_home(prospect, static_cast<Node>(home), threshold);
                    to != unknown_node)
                    from[static_cast<std::size_t>(to)] |= policy::node_bit(static_cast<Node>(home));
                prospect.best[home] = best;
                prospect.local[home] = local;
            }
            for (std::size_t to = 0; to < count; ++to)
                if (from[to] != 0 && !visit({{page, end}, static_cast<Node>(to), from[to], false})) return;
        }
        page = end;
    }
}

} // namespace homing::model
