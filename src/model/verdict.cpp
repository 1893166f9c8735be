#include "model/verdict.hpp"

#include "base/invariant.hpp"

#include <algorithm>

namespace homing::model {

Node better_home(const Prospect& prospect, Node home, double threshold) {
    if (home < 0) return unknown_node;
    const auto here = static_cast<std::size_t>(home);
    const auto best =
        static_cast<std::size_t>(std::ranges::max_element(prospect.best) - prospect.best.begin());
    // A home that is no node of the team: somebody put the page there, and nothing is used from it.
    if (here >= prospect.best.size()) return unknown_node;
    const bool likelier = prospect.best[best] - prospect.best[here] > tuning::least_lead;
    const bool more_local = prospect.local[best] - prospect.local[here] > tuning::least_gain;
    const bool criterion = prospect.local[best] > threshold * prospect.local[here];
    return likelier && more_local && criterion ? static_cast<Node>(best) : unknown_node;
}

bool is_spread(const Prospect& prospect) { return prospect.spread > tuning::certainly_spread; }

double estimate_ignorance(const Belief& belief, std::span<const HomeRun> homes) {
    std::uint64_t pages = 0;
    for (const HomeRun& run : homes)
        pages += run.node >= 0 ? run.pages.size() : 0;
    const std::uint64_t looks = std::min<std::uint64_t>(pages, tuning::looks_for_ignorance);
    Prospect prospect;
    double sum = 0;
    std::uint64_t passed = 0, looked = 0; // pages before the run, looks so far
    for (const HomeRun& run : homes) {
        if (run.node < 0) continue;
        for (; looked < looks; ++looked) {
            const std::uint64_t at = (2 * looked + 1) * pages / (2 * looks);
            if (at >= passed + run.pages.size()) break;
            belief.prospect(run.pages.first + (at - passed), run.node, prospect);
            const Node to = better_home(prospect, run.node);
            const auto then = static_cast<std::size_t>(to == unknown_node ? run.node : to);
            const double local = then < prospect.local.size() ? prospect.local[then] : 0;
            if (!is_spread(prospect)) sum += std::max(prospect.known - local, 0.0);
        }
        passed += run.pages.size();
    }
    return looks > 0 ? sum / static_cast<double>(looks) : 0;
}

void for_each_wish(const Belief& belief, double threshold, const std::function<bool(const Wish&)>& visit) {
    Prospect prospect;
    const auto count = static_cast<std::size_t>(belief.nodes());
    std::vector<policy::NodeSet> from(count);
    for (std::uint64_t page = 0; page < belief.pages();) {
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

Verdict judge(const Belief& belief, std::span<const HomeRun> homes) {
    Verdict verdict;
    Prospect prospect;
    const auto add_range = [](std::vector<policy::PageRange>& ranges, policy::PageRange pages) {
        if (!ranges.empty() && ranges.back().end == pages.first)
            ranges.back().end = pages.end;
        else
            ranges.push_back(pages);
    };
    std::uint64_t before = 0;
    for (const HomeRun& run : homes) {
        invariant(run.pages.first >= before && run.pages.end >= run.pages.first,
                  "homes are ascending and disjoint");
        before = run.pages.end;
        if (run.node < 0) continue;
        for (std::uint64_t page = run.pages.first; page < run.pages.end;) {
            const std::uint64_t end = std::min(run.pages.end, belief.stretch_end(page));
            // What fades at a border is judged in the middle.
            belief.prospect(page + (end - page) / 2, run.node, prospect);
            const auto count = static_cast<double>(end - page);
            const auto here = static_cast<std::size_t>(run.node);
            const double now = here < prospect.local.size() ? prospect.local[here] : 0;
            double then = now;
            if (is_spread(prospect)) {
                add_range(verdict.spread, {page, end});
            } else if (const Node to = better_home(prospect, run.node); to != unknown_node) {
                then = prospect.local[static_cast<std::size_t>(to)];
                Move* last = verdict.moves.empty() ? nullptr : &verdict.moves.back();
                if (last && last->pages.end == page && last->from == run.node && last->to == to) {
                    const auto had = static_cast<double>(last->pages.size());
                    last->gain = (last->gain * had + (then - now) * count) / (had + count);
                    last->pages.end = end;
                } else {
                    verdict.moves.push_back({{page, end}, run.node, to, then - now});
                }
            }
            verdict.local_now += now * count;
            verdict.local_then += then * count;
            verdict.pages += end - page;
            page = end;
        }
    }
    if (verdict.pages > 0)
        for (double* share : {&verdict.local_now, &verdict.local_then})
            *share /= static_cast<double>(verdict.pages);
    return verdict;
}

} // namespace homing::model
