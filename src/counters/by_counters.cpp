#include "counters/by_counters.hpp"

#include "base/options.hpp"
#include "base/running_time.hpp"
#include "engine/guarded.hpp"
#include "model/stability.hpp"
#include "record/record.hpp"

#include <string>

namespace homing::counters {
namespace {

bool counters_decide(Engine& engine) { return engine.counts_misses() && option_is(Option::guard, "off"); }

} // namespace

void ByCounters::iteration_observed(Engine& engine, bool check) {
    // A guess is a few regions of an iteration: pages would go to and fro between those that use them.
    if (engine.is_guess()) return;
    const double begin = thread_seconds();
    engine.own_areas(); // two that move pages by criteria of their own would send them to and fro
    pages_.forget_gone(engine);
    const HotMemory hot;
    Outcome outcome;
    for (const auto& area : engine.watch().areas()) {
        if (!area->seen || area->left_alone()) continue;
        std::vector<std::uint64_t> granules;
        for (std::uint64_t i = 0; i < area->there().size(); ++i) {
            const std::uint64_t granule = area->there().at(i);
            if (pages_.is_due(*area, granule) && hot.has(*area, granule)) granules.push_back(granule);
        }
        if (!granules.empty()) outcome.add(pages_.decide(engine, *area, granules));
    }
    engine.statistics().inferring += thread_seconds() - begin;
    if (outcome.accessed > 0) ++decisions_;
    if (totals_.moved == 0) moved_first_ = outcome.moved;
    totals_.add(outcome);
    if (check)
        engine.stability().checked(!policy::are_few(outcome.eligible, outcome.accessed));
    else if (outcome.accessed > 0 || totals_.frozen > 0) // all may be frozen
        engine.stability().observed(outcome.eligible, outcome.accessed);
}

void ByCounters::process_ends(Engine&) {
    if (decisions_ == 0) return;
    record::message(record::Level::note,
                    "by counters of all misses (--guard off): " + std::to_string(totals_.moved) +
                        " pages moved, " + std::to_string(moved_first_) + " of them at once; " +
                        std::to_string(totals_.frozen) + " that went to and fro stay where they are");
}

std::unique_ptr<Mechanism> make_for_iterations(Engine& engine) {
    if (counters_decide(engine))
        return std::make_unique<ByCounters>(engine.nodes().count(), option_number(Option::threshold));
    return make_iterative(true, engine.team());
}

void begin(Engine& engine) noexcept {
    if (!option_is(Option::mechanism, "iterative") || !counters_decide(engine)) return;
    engine.guarded([&] { engine.move_by(make_for_iterations(engine)); });
}

} // namespace homing::counters
