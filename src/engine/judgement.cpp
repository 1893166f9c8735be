#include "engine/judgement.hpp"

#include "base/random.hpp"
#include "engine/engine.hpp"
#include "model/tuning.hpp"
#include "model/verdict.hpp"
#include "record/record.hpp"

#include <algorithm>

namespace homing {
namespace {

using model::unknown_node;

/// Where a page that all nodes use belongs: with those who write it, where that is known; else one node after
/// the other has one.
policy::Node spread_node(const AreaBelief& learnt, std::uint64_t page, int nodes, model::Prospect& prospect) {
    if (learnt.writers) {
        learnt.writers->prospect(page, unknown_node, prospect);
        const auto best = std::ranges::max_element(prospect.best);
        if (*best > model::tuning::certain) return static_cast<policy::Node>(best - prospect.best.begin());
    }
    return static_cast<policy::Node>(page % static_cast<std::uint64_t>(nodes));
}

} // namespace

Judgement judge(Engine& engine, WatchedArea& area, std::uint64_t looks, double threshold) {
    area.refused.time_passes(record::now());
    AreaBelief& learnt = area.learnt;
    const PageSet& there = area.there();
    const auto nodes = static_cast<std::size_t>(engine.nodes().count());
    Judgement judgement;
    judgement.area = &area;
    judgement.threshold = threshold;
    judgement.fits = learnt.fits;
    judgement.taken = learnt.taken;
    judgement.pages = there.size();
    const std::vector<std::uint64_t> pages = even_pages(there.size(), looks, engine.iteration());
    std::vector<std::uint64_t> granules;
    for (const std::uint64_t page : pages)
        granules.push_back(there.at(page));
    std::vector<int> homes;
    engine.mover().homes(area, granules, homes);
    judgement.is_whole = pages.size() == there.size();
    const double weight = static_cast<double>(there.size()) / static_cast<double>(pages.size());
    std::vector<double> now(nodes, 0), then(nodes, 0), spread_on(nodes, 0);
    struct Page {
        std::uint64_t granule;
        policy::Node home, to;
    };
    std::vector<Page> spread, astray;
    model::Prospect prospect;
    double ignorance = 0;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        if (homes[i] < 0) continue;
        const auto home = static_cast<policy::Node>(homes[i]);
        const auto here = static_cast<std::size_t>(home);
        judgement.considered += weight;
        now[here] += weight;
        learnt.belief->prospect(pages[i], home, prospect);
        if (area.refused.left(granules[i])) {
            then[here] += weight;
            continue;
        }
        if (model::is_spread(prospect)) {
            ++spread_on[here];
            spread.push_back(
                {granules[i], home, spread_node(learnt, pages[i], engine.nodes().count(), prospect)});
            continue;
        }
        policy::Node to = model::better_home(prospect, home, threshold);
        if (learnt.goes_back(granules[i], to)) {
            judgement.held += weight;
            to = unknown_node;
        }
        const auto at = static_cast<std::size_t>(to == unknown_node ? home : to);
        then[at] += weight;
        // Pages that none was touched near to, for all that were: it does not pay to ask for them.
        if (!prospect.is_beyond) ignorance += std::max(prospect.known - prospect.local[at], 0.0);
        if (to == unknown_node) continue;
        astray.push_back({granules[i], home, to});
        judgement.misplaced += weight;
        judgement.gain += weight * (prospect.local[at] - prospect.local[here]);
    }
    if (!spread.empty()) {
        // Few looks scatter: one more than the share is no sign.
        const double share = static_cast<double>(spread.size()) / static_cast<double>(nodes);
        judgement.spreads = *std::ranges::max_element(spread_on) > model::tuning::clearly_more * share + 1;
        for (const Page& one : spread) {
            const policy::Node at = judgement.spreads ? one.to : one.home;
            then[static_cast<std::size_t>(at)] += weight;
            if (at == one.home) continue;
            judgement.misplaced += weight;
            astray.push_back(one);
        }
    }
    if (judgement.is_whole) {
        std::ranges::sort(astray, {}, &Page::granule);
        for (const Page& one : astray) {
            Judgement::Move* const last = judgement.moves.empty() ? nullptr : &judgement.moves.back();
            if (last && last->granules.end == one.granule && last->to == one.to) {
                ++last->granules.end;
                last->from |= policy::node_bit(one.home);
            } else {
                judgement.moves.push_back(
                    {{one.granule, one.granule + 1}, one.to, policy::node_bit(one.home)});
            }
        }
    }
    learnt.ignorance =
        judgement.considered > 0 ? std::min(1.0, ignorance * weight / judgement.considered) : 1;
    // What touches contradict is not known, whatever the older ones say: more of them will tell.
    if (learnt.surprised) learnt.ignorance = 1;
    judgement.busiest_now = *std::ranges::max_element(now);
    judgement.busiest_then = *std::ranges::max_element(then);
    judgement.looks = there.size() - std::min(there.size(), area.seen_homes.known());
    return judgement;
}

void Judgement::for_each_move(
    const std::function<bool(policy::PageRange, policy::Node, policy::NodeSet)>& visit) const {
    if (is_whole) {
        std::ranges::all_of(moves,
                            [&](const Move& move) { return visit(move.granules, move.to, move.from); });
        return;
    }
    const AreaBelief& learnt = area->learnt;
    const PageSet& there = area->there();
    const int nodes = learnt.belief->nodes();
    model::Prospect prospect;
    model::for_each_wish(*learnt.belief, area->next_to_move, threshold, [&](const model::Wish& wish) {
        if (!wish.spread) {
            bool goes_on = true;
            const policy::PageRange span{there.at(wish.pages.first), there.at(wish.pages.end - 1) + 1};
            there.for_each(
                span, [&](policy::PageRange part) { goes_on = goes_on && visit(part, wish.to, wish.from); });
            return goes_on;
        }
        if (!spreads) return true;
        for (std::uint64_t page = wish.pages.first; page < wish.pages.end; ++page) {
            const std::uint64_t granule = there.at(page);
            if (!visit({granule, granule + 1}, spread_node(learnt, page, nodes, prospect), wish.from))
                return false;
        }
        return true;
    });
}

policy::Node owner_of(const WatchedArea& area, std::uint64_t granule) {
    const AreaBelief& learnt = area.learnt;
    model::Prospect prospect;
    const std::uint64_t page = std::min(area.there().below(granule), area.there().size() - 1);
    learnt.belief->prospect(page, unknown_node, prospect);
    if (model::is_spread(prospect)) return spread_node(learnt, page, learnt.belief->nodes(), prospect);
    return static_cast<policy::Node>(std::ranges::max_element(prospect.best) - prospect.best.begin());
}

} // namespace homing
