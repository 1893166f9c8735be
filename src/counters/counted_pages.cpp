#include "counters/counted_pages.hpp"

#include "counters/criterion.hpp"
#include "kernel/page_moves.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <map>

namespace homing::counters {

void CountedPages::take(Engine& engine) {
    for (const Reference& reference : engine.references()) {
        WatchedArea* area = engine.watch().find(reference.address);
        if (!area) continue;
        area->learnt.fresh.clear(); // no belief is made of them
        counts_.size_area(area->id, area->granules);
        counts_.add(area->id, area->granule_of(reference.address),
                    static_cast<policy::Node>(engine.nodes().position(reference.node)), reference.weight);
    }
}

void CountedPages::forget_gone(Engine& engine) {
    counts_.forget_gone([&](std::uint32_t id) {
        return std::ranges::any_of(engine.watch().areas(), [=](const auto& area) { return area->id == id; });
    });
}

bool CountedPages::wants_references(const WatchedArea& area, std::uint64_t granule) const {
    return counts_.counts(area.id, granule).empty() && !counts_.is_frozen(area.id, granule);
}

bool CountedPages::is_due(const WatchedArea& area, std::uint64_t granule) {
    if (counts_.counts(area.id, granule).empty()) return false;
    if (!counts_.is_frozen(area.id, granule)) return true;
    counts_.scanned(area.id, granule);
    return false;
}

Outcome CountedPages::decide(Engine& engine, WatchedArea& area, const std::vector<std::uint64_t>& granules) {
    Outcome outcome;
    outcome.accessed = granules.size();
    std::vector<int> positions;
    engine.mover().homes(area, granules, positions);
    std::map<std::uint64_t, policy::Node> homes;
    Trace trace(engine.nodes().count());
    for (std::size_t i = 0; i < granules.size(); ++i) {
        homes[granules[i]] = static_cast<policy::Node>(positions[i]);
        const std::span<const std::uint32_t> counts = counts_.counts(area.id, granules[i]);
        for (std::size_t node = 0; node < counts.size(); ++node)
            if (counts[node] > 0)
                trace.add({area.id, granules[i]}, static_cast<policy::Node>(node), counts[node]);
        counts_.scanned(area.id, granules[i]);
    }
    const auto home = [&](PageId page) { return homes[page.granule]; };
    const std::vector<PlannedMove> plan = eligible_moves(trace, home, threshold_);
    if (plan.empty()) return outcome;
    outcome.eligible = plan.size();
    if (engine.policies().bound_by_program(area.range.begin)) {
        record::message(record::Level::note,
                        area.name + " was bound to nodes by the program itself: left alone");
        area.bound = true;
        return outcome;
    }
    std::vector<PageMove> moves;
    for (const PlannedMove& planned : plan) {
        PageMove move;
        const Range range = area.granule_range(planned.page.granule);
        move.page = reinterpret_cast<void*>(range.begin);
        move.pages = std::max<std::uint64_t>(1, area.granule / page_bytes());
        move.target = engine.nodes().system(planned.to);
        if (Windows* windows = engine.windows()) windows->release(range);
        moves.push_back(move);
    }
    Moves result;
    move_each(engine.kernel(), moves, result, [&engine] { engine.pause_source(); });
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const std::uint64_t granule = plan[i].page.granule;
        if (moves[i].moved) {
            area.moved_from({granule, granule + 1}, plan[i].from);
            area.sent_home = true;
            outcome.frozen += counts_.moved(area.id, granule, plan[i].from, plan[i].to);
        } else if (moves[i].refused()) {
            outcome.frozen += counts_.refused(area.id, granule);
        }
    }
    outcome.moved = result.moved;
    engine.pages_placed(); // homes that were seen before hold no more
    engine.record_moves(area.id, result.moved + result.refused, result);
    engine.record_move(area, result.moved);
    return outcome;
}

} // namespace homing::counters
