#include "phases/replayer.hpp"

#include "base/options.hpp"
#include "counters/by_counters.hpp"
#include "engine/guarded.hpp"
#include "phases/recorder.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <utility>

namespace homing::replay {
namespace {

/// Calls of record in a recording: a program that records in every iteration and never replays ends there.
/// 280 bytes each.
constexpr std::size_t most_records = std::size_t{1} << 14;

using AreasById = std::map<std::uint32_t, WatchedArea*>;

AreasById areas_by_id(Engine& engine) {
    AreasById found;
    for (const auto& area : engine.watch().areas())
        found.emplace(area->id, area.get());
    return found;
}

/// The area of a page, if it is as it was: granules of as many bytes.
WatchedArea* area_of(const AreasById& areas, PageId page,
                     const std::map<std::uint32_t, std::size_t>& granule_bytes) {
    const auto at = areas.find(page.area);
    if (at == areas.end() || page.granule >= at->second->granules) return nullptr;
    const auto bytes = granule_bytes.find(page.area);
    return bytes != granule_bytes.end() && bytes->second == at->second->granule ? at->second : nullptr;
}

PageMove move_of(const Engine& engine, const WatchedArea& area, std::uint64_t granule, policy::Node to) {
    PageMove move;
    move.page = reinterpret_cast<void*>(area.granule_range(granule).begin);
    move.pages = std::max<std::uint64_t>(1, area.granule / page_bytes());
    move.target = engine.nodes().system(to);
    return move;
}

} // namespace

void Replayer::say_once(Said what, const char* text) {
    if (said_ & static_cast<unsigned>(what)) return;
    said_ |= static_cast<unsigned>(what);
    record::message(record::Level::warning, text);
}

Outcome Replayer::record(Engine& engine) {
    if (!positions_.replays() && positions_.records() == most_records) {
        say_once(Said::too_many_records, "upmlib_record does nothing after 16,384 calls without a replay: an "
                                         "iteration is recorded once");
        return Outcome::nothing;
    }
    engine.take_in(); // what was seen is of the phase that ends here
    if (positions_.record()) {
        bring_back(engine);
        write_rows();
        phases_.clear();
        planned_ = false;
    }
    if (phases_.empty()) {
        if (!iterations_called_ && option_is(Option::mechanism, "iterative") &&
            !std::exchange(held_back_, true))
            engine.move_by(make_iterative(false, engine.team()));
        engine.begin_observing(policy::Activity::observe);
        if (engine.prepare_windows().empty()) {
            engine.follow_changes();
            engine.windows()->start(engine.watch().ranges());
        }
        engine.work_beside(begin_recorder());
    }
    phases_.emplace_back(engine.nodes().count());
    return Outcome::done;
}

std::unique_ptr<Mechanism> Replayer::begin_recorder() {
    const auto here = std::make_shared<Replayer*>(this);
    recorder_ = here;
    return make_recorder([here] { return (*here)->running_recording(); });
}

/// What else works beside the mechanism is the program's: a next touch that it asked for goes on.
void Replayer::stop_recording(Engine& engine) {
    engine.take_in();
    if (!recorder_.expired()) engine.work_beside(nullptr);
    if (engine.stability().settled()) engine.begin_observing(policy::Activity::rest);
}

/// For all phases at once, before anything is moved for one: homes are those of the rest of the iteration.
void Replayer::make_plans(Engine& engine) {
    if (std::exchange(planned_, true)) return;
    stop_recording(engine);
    engine.follow_changes();
    engine.own_areas();
    granule_bytes_.clear();
    if (!engine.counts_misses()) engine.team().update(engine.kernel(), engine.helper_thread());
    std::vector<Trace> traces;
    std::size_t beliefs_left = most_phase_beliefs;
    for (const Phase& phase : phases_)
        traces.push_back(expected_trace(engine, phase.recording, beliefs_left));
    std::map<std::uint32_t, std::vector<std::uint64_t>> accessed; // granules by area, in any phase
    const auto note = [&](PageId page, auto) { accessed[page.area].push_back(page.granule); };
    for (std::size_t i = 0; i < phases_.size(); ++i) {
        phases_[i].recording.trace.for_each(note);
        traces[i].for_each(note);
    }
    std::map<PageId, policy::Node> homes;
    for (const auto& [id, area] : areas_by_id(engine)) {
        if (engine.policies().bound_by_program(area->range.begin)) {
            record::message(record::Level::note,
                            area->name + " was bound to nodes by the program itself: left alone");
            continue;
        }
        granule_bytes_[id] = area->granule;
        std::vector<std::uint64_t>& granules = accessed[id];
        std::erase_if(granules, [count = area->granules](std::uint64_t one) { return one >= count; });
        std::ranges::sort(granules);
        granules.erase(std::unique(granules.begin(), granules.end()), granules.end());
        std::vector<int> at;
        engine.mover().homes(*area, granules, at);
        for (std::size_t i = 0; i < granules.size(); ++i)
            homes[{id, granules[i]}] = static_cast<policy::Node>(at[i]);
    }
    const auto home = [&](PageId page) {
        const auto at = homes.find(page);
        return at == homes.end() ? policy::unknown_node : at->second;
    };
    for (std::size_t i = 0; i < positions_.phases(); ++i) {
        Phase& phase = phases_[i];
        const Trace& seen = phase.recording.trace;
        phase.plan = eligible_moves(traces[i], home, threshold_);
        phase.accessed = seen.pages();
        phase.eligible = phase.plan.size();
        keep_most_critical(phase.plan, most_);
        phase.planned = phase.plan.size();
        phase.share = share_of(seen, home, phase.plan);
    }
    for (Phase& phase : phases_)
        phase.recording = Recording(engine.nodes().count()); // it has done its work
}

/// Moves pages, which no window takes away any more.
Moves Replayer::send(Engine& engine, std::vector<PageMove>& moves) {
    Moves result;
    if (moves.empty()) return result;
    if (Windows* windows = engine.windows())
        for (const PageMove& move : moves)
            windows->release(range_of(move.page, move.pages * page_bytes()));
    engine.pages_placed(); // homes that were seen before hold no more
    move_each(engine.kernel(), moves, result, [&engine] { engine.pause_source(); });
    if (const std::uint64_t wanted = result.moved + result.refused; wanted > 0)
        engine.record_moves(Engine::many_areas, wanted, result);
    return result;
}

Outcome Replayer::replay(Engine& engine) {
    const std::size_t number = positions_.replay();
    if (number == Positions::no_phase) {
        if (positions_.records() == 0)
            say_once(Said::nothing_recorded,
                     "upmlib_replay moves nothing: no call of upmlib_record came before it");
        else if (positions_.phases() == 0)
            say_once(Said::one_record, "upmlib_replay moves nothing: a phase lies between two calls of "
                                       "upmlib_record, and there was one");
        else
            say_once(Said::no_phase,
                     "upmlib_replay moves nothing where the last recorded phase has ended: an iteration has "
                     "as many calls of replay and undo as the recorded one had of record");
        return Outcome::nothing;
    }
    make_plans(engine);
    return move_for(engine, number);
}

Outcome Replayer::move_for(Engine& engine, std::size_t number) {
    engine.follow_changes();
    Phase& phase = phases_[number];
    ++phase.replays;
    if (!moves_) return Outcome::done;
    const AreasById areas = areas_by_id(engine);
    std::vector<PageMove> moves;
    std::vector<std::size_t> of; ///< of each, its place in the plan
    for (std::size_t i = 0; i < phase.plan.size(); ++i) {
        const PlannedMove& planned = phase.plan[i];
        if (WatchedArea* area = area_of(areas, planned.page, granule_bytes_)) {
            moves.push_back(move_of(engine, *area, planned.page.granule, planned.to));
            of.push_back(i);
        }
    }
    const Moves result = send(engine, moves);
    phase.moved += result.moved;
    phase.refused += result.refused;
    phase.seconds += result.seconds;
    phase.calls += result.calls;
    for (std::size_t i = moves.size(); i-- > 0;) {
        const PlannedMove planned = phase.plan[of[i]];
        if (moves[i].moved) {
            const auto original = static_cast<policy::Node>(engine.nodes().position(moves[i].before));
            const auto [at, is_first] =
                displaced_.try_emplace(planned.page, Displaced{original, planned.to, number});
            if (!is_first) at->second.now = planned.to; // its original home is where it was at first
        } else if (moves[i].refused()) {
            phase.plan.erase(phase.plan.begin() + static_cast<std::ptrdiff_t>(of[i]));
        }
    }
    if ((phase.replays & (phase.replays - 1)) == 0) write_row(phase, number, positions_.phases());
    return result.refused > 0 ? Outcome::refused : Outcome::done;
}

void Replayer::adopt(Engine& engine, std::vector<Recording> recordings) {
    positions_ = {};
    phases_.clear();
    planned_ = false;
    positions_.record();
    for (Recording& recording : recordings) {
        positions_.record();
        phases_.emplace_back(engine.nodes().count());
        phases_.back().recording = std::move(recording);
    }
    make_plans(engine);
}

void Replayer::replay_phase(Engine& engine, std::size_t number) {
    bring_back(engine);
    move_for(engine, number);
}

std::map<std::uint32_t, std::uint64_t> Replayer::planned_granules(std::size_t number) const {
    std::map<std::uint32_t, std::uint64_t> found;
    for (const PlannedMove& move : phases_[number].plan)
        ++found[move.page.area];
    return found;
}

/// Pages that replay moved go to their original homes, but for those that somebody else has moved meanwhile.
Outcome Replayer::bring_back(Engine& engine) {
    if (displaced_.empty()) return Outcome::done;
    engine.follow_changes();
    const AreasById areas = areas_by_id(engine);
    std::vector<PageMove> moves;
    std::vector<std::pair<PageId, std::size_t>> of;
    for (const auto& [page, displaced] : displaced_)
        // A node that is no target holds no page that we could have moved away.
        if (WatchedArea* area = area_of(areas, page, granule_bytes_); area && displaced.original >= 0) {
            moves.push_back(move_of(engine, *area, page.granule, displaced.original));
            moves.back().expected = engine.nodes().system(displaced.now);
            of.emplace_back(page, displaced.phase);
        }
    displaced_.clear();
    const Moves result = send(engine, moves);
    for (std::size_t i = 0; i < moves.size(); ++i) {
        if (of[i].second >= phases_.size()) continue;
        Phase& phase = phases_[of[i].second];
        if (moves[i].moved) phase.undone += moves[i].pages;
        if (!moves[i].refused()) continue;
        phase.refused += moves[i].pages;
        for (Phase& one : phases_) // it would not come home again
            std::erase_if(one.plan, [&](const PlannedMove& move) { return move.page == of[i].first; });
    }
    if (!of.empty() && of.front().second < phases_.size()) {
        Phase& phase = phases_[of.front().second];
        phase.seconds += result.seconds;
        phase.calls += result.calls;
    }
    return result.refused > 0 ? Outcome::refused : Outcome::done;
}

void Replayer::placed(Engine& engine, Range range) {
    if (displaced_.empty()) return;
    engine.follow_changes();
    const AreasById areas = areas_by_id(engine);
    std::erase_if(displaced_, [&](const auto& one) {
        const WatchedArea* area = area_of(areas, one.first, granule_bytes_);
        return area && range.overlaps(area->granule_range(one.first.granule));
    });
}

Outcome Replayer::undo(Engine& engine) {
    positions_.undo();
    if (positions_.records() == 0) {
        say_once(Said::nothing_replayed, "upmlib_undo moves nothing: nothing was recorded before it");
        return Outcome::nothing;
    }
    return bring_back(engine);
}

void Replayer::iteration_called(Engine& engine) {
    iterations_called_ = true;
    positions_.iteration_ended();
    if (std::exchange(held_back_, false)) engine.move_by(counters::make_for_iterations(engine));
}

void Replayer::write_row(const Phase& phase, std::size_t number, std::size_t phases) {
    record::phase_row row;
    row.number = static_cast<record::u32>(number);
    row.phases = static_cast<record::u32>(phases);
    row.time = record::now();
    row.accessed = phase.accessed;
    row.eligible = phase.eligible;
    row.planned = phase.planned;
    row.refused = phase.refused;
    row.replays = phase.replays;
    row.moved = phase.moved;
    row.undone = phase.undone;
    row.references = phase.share.references;
    row.remote = phase.share.remote;
    row.remote_with_plan = phase.share.remote_with_plan;
    row.seconds = phase.seconds;
    row.calls = phase.calls;
    record::append(row);
}

void Replayer::write_rows() const {
    if (!planned_) return;
    for (std::size_t i = 0; i < positions_.phases() && i < phases_.size(); ++i)
        write_row(phases_[i], i, positions_.phases());
}

namespace {

/// What the program says moves where the mechanism moves at all.
Replayer& replayer() {
    static auto* the_replayer = // never destroyed: used until the very end of the process
        new Replayer(static_cast<std::size_t>(option_number(Option::replay_pages)),
                     option_number(Option::threshold), !option_is(Option::mechanism, "observe"));
    return *the_replayer;
}
constinit std::atomic<bool> in_use{false};

template <class Work> Outcome within(Engine& engine, Work&& work) noexcept {
    Outcome outcome = Outcome::refused;
    in_use.store(true, std::memory_order_relaxed);
    engine.guarded([&] { outcome = work(replayer()); });
    return outcome;
}

} // namespace

Outcome record_called(Engine& engine) noexcept {
    return within(engine, [&](Replayer& one) { return one.record(engine); });
}
Outcome replay_called(Engine& engine) noexcept {
    return within(engine, [&](Replayer& one) { return one.replay(engine); });
}
Outcome undo_called(Engine& engine) noexcept {
    return within(engine, [&](Replayer& one) { return one.undo(engine); });
}
void iteration_called(Engine& engine) noexcept {
    engine.guarded([&] { replayer().iteration_called(engine); });
}
void memory_placed(Engine& engine, Range range) noexcept {
    if (!in_use.load(std::memory_order_relaxed)) return;
    engine.guarded([&] { replayer().placed(engine, range); });
}
void set_most(std::size_t most) noexcept { replayer().set_most(most); }

void write_rows() noexcept {
    if (!in_use.load(std::memory_order_relaxed)) return;
    try {
        replayer().write_rows();
    } catch (...) {
        return; // the rows that were written before stay
    }
}

} // namespace homing::replay
