// What the engine leaves: the rows of the record, and the end of the process.
#include "engine/engine.hpp"

#include "areas/allocation_plans.hpp"
#include "areas/areas.hpp"
#include "areas/page_rows.hpp"
#include "areas/unwatched_rows.hpp"
#include "base/floating_point.hpp"
#include "base/inside.hpp"
#include "base/uncancelled.hpp"
#include "engine/guarded.hpp"
#include "machine/simulation.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <ctime>
#include <numeric>

namespace homing {
namespace {

/// Pages looked at for an area's placement; the rest is scaled. On the way from where they were to where they
/// are fewer will do: three points, two times out of three.
constexpr std::uint64_t placement_sample = 1024;
constexpr std::uint64_t sample_on_the_way = 256;
/// Of very many areas together, and of each of them at the least.
constexpr std::uint64_t placement_samples = std::uint64_t{1} << 17;
constexpr std::uint64_t least_placement_sample = 16;
/// Naps of a millisecond that the end of the process waits for the helper.
constexpr int most_naps = 2500;

std::uint32_t state_of(policy::Activity activity, const policy::Stability& stability) {
    if (activity == policy::Activity::rest || stability.settled()) return 3;
    return 2;
}

} // namespace

/// At rest no round ends. Late in a run only those have rows in which something was seen or moved.
void Engine::record_round(double now, std::uint64_t references, std::uint64_t moved) {
    if (iteration_ > record::RowPace::all && moved == 0 && references == 0) return;
    if (!round_pace_.next()) return;
    record::append(record::iteration_row{.number = iteration_,
                                         .time = iteration_begin_,
                                         .seconds = now - iteration_begin_,
                                         .regions = events_in_iteration_,
                                         .state = basis_ == Basis::none ? 1 : state_of(activity_, stability_),
                                         .basis = static_cast<record::u32>(basis_),
                                         .references = references,
                                         .moved = moved,
                                         .overhead_seconds = spent_in_iteration_});
    record_overhead(record::now());
}

void Engine::record_overhead(double now) noexcept {
    record::overhead_row row{.time = now,
                             .observing = statistics_.observing,
                             .deciding = statistics_.deciding,
                             .moving = statistics_.moving,
                             .faults = statistics_.references,
                             .region_events = events_};
    if (windows_) {
        const Windows::Costs costs = windows_->costs();
        row.faults = costs.faults;
        row.armed = costs.armed;
        row.touches = costs.touches;
        row.calls = costs.arm_calls + costs.back_calls + costs.touches;
    }
    record::append(row);
}

void Engine::record_placements(std::uint32_t when) {
    // Where an area grows, most of it was not there when it was found first.
    const auto found = [](const WatchedArea& area) {
        return area.seen && !area.sent_home && area.there().size() > area.found_granules * 9 / 8;
    };
    for (const auto& area : watch_.areas())
        if (when != 1 || found(*area)) record_placement(*area, when);
}

void Engine::record_touch(const WatchedArea& area, const Reference& reference, int position, Origin origin,
                          std::uint32_t region, double now) {
    const bool asked = origin == Origin::asked;
    const TouchPlace where{region, asked ? open_.place : PlaceTable::nowhere, iteration_};
    const std::uint32_t source = asked ? 3 : scans() ? 2 : 1;
    touch_record_.touch(watch_, area, reference, position, where, source, now);
}

/// Of every granule, unless there are very many.
void Engine::record_homes(WatchedArea& area, std::uint32_t when) {
    if (!area.seen || area.granules > TouchRecord::most_granules) return;
    std::vector<std::uint64_t> granules(area.granules);
    std::iota(granules.begin(), granules.end(), std::uint64_t{0});
    std::vector<int> homes;
    mover_.homes(area, granules, homes);
    touch_record_.homes(area, homes, when, record::now());
}

void Engine::record_move(WatchedArea& area, std::uint64_t pages) {
    if (move_rows_.told(area.id) && pages * placement_sample >= area.base_pages()) record_placement(area, 2);
}

void Engine::record_refusal(std::uint32_t area, int error, std::uint64_t pages) {
    record::append(
        record::refusal_row{.area = area, .error = error, .pages = pages, .iteration = iteration_});
}

void Engine::pages_placed(Range range, const PlacementResult& result) noexcept {
    pages_placed();
    if (result.moved + result.refused == 0) return;
    guarded([&] { // any thread may call, while another is at work
        const WatchedArea* area = watch_.find(range.begin);
        const bool is_part = area && range.end <= area->range.end;
        record_moves(is_part ? area->id : many_areas, result.moved + result.refused, result);
    });
}

void Engine::record_moves(std::uint32_t area, std::uint64_t wanted, const Moves& moves) {
    move_rows_.add(area, wanted, moves, iteration_);
    statistics_.moved += moves.moved;
    statistics_.refused += moves.refused;
    statistics_.moving += moves.seconds;
}

void Engine::record_estimates(bool all) {
    for (const auto& area : watch_.areas())
        if (!area->end_recorded && (all ? !area->remote_share.empty() : area->remote_share.has_news()))
            record_estimate(*area, mover_, iteration_, samples_accesses(), traffic(*area));
}

void Engine::record_placement(WatchedArea& area, std::uint32_t when) {
    if (touch_record_.enabled() && when != 2) record_homes(area, when);
    const std::uint64_t most =
        when == 2 ? sample_on_the_way
                  : std::clamp(placement_samples / std::max<std::size_t>(1, watch_.areas().size()),
                               least_placement_sample, placement_sample);
    if (!record_pages_by_node(area, mover_, nodes_.count(), {when, iteration_}, most))
        watch_.record_end(area, record::now()); // the allocator's memory, whose blocks the program has freed
}

/// Allocates nothing.
void Engine::record_totals(double now) noexcept {
    record_overhead(now);
    record::append(record::end_row{.time = now,
                                   .parallel_seconds = parallel_seconds_,
                                   .iterations = iteration_,
                                   .settled_at = static_cast<record::u32>(statistics_.settled_at),
                                   .period = period_,
                                   .live_areas = watch_.areas().size(),
                                   .dropped_areas = area_registry().dropped()});
}

void Engine::abandon() noexcept {
    finished_.store(true, std::memory_order_seq_cst);
    helper_.abandon();
    allocation_plans().withdraw(); // a child's own blocks are not those of the team
    if (windows_) windows_->abandon();
}

void Engine::finish() noexcept {
    if (finished_.load(std::memory_order_seq_cst)) return; // system calls may be forbidden by now
    if (raw::call(SYS_getpid) != process_) return;         // it may even share its memory with the parent
    if (finished_.exchange(true, std::memory_order_seq_cst)) return;
    const Inside inside;
    const Uncancelled uncancelled;
    const OwnFloatingPoint own;
    if (windows_) windows_->abandon();
    phases::step_aside();
    // Within a long region our own thread may be at work, which does not take long.
    helper_.stop();
    const timespec nap{0, 1'000'000};
    for (int naps = 0; helper_works_.load(std::memory_order_seq_cst) && naps < most_naps; ++naps)
        raw::call(SYS_nanosleep, &nap, nullptr);
    // exit() may come from within a region, by any thread: what another thread is working on is left to it.
    if (busy_.load(std::memory_order_seq_cst)) {
        record::message(record::Level::note,
                        "the process ended while homing was at work: the last rows are missing");
        record::fact("end", "rows missing");
        if (Simulation* simulated = simulation()) simulated->report();
        record::close();
        return;
    }
    // Each part by itself: what memory was lacking for costs no more than that part.
    bool complete = true;
    const auto attempt = [&complete](auto&& part) noexcept {
        try {
            part();
        } catch (...) {
            complete = false;
        }
    };
    attempt([&] {
        if (activity_ != policy::Activity::rest && samples_itself()) take_references();
    });
    attempt([&] {
        if (sampled_) sampled_->stop();
        if (windows_) windows_->stop();
    });
    attempt([&] {
        say_threads(); // where no iteration was found
        say_windows_ended();
    });
    attempt([&] {
        const double begin = record::now();
        watch_.synchronise(begin); // what was freed is no longer where it was
        watch_.record_ends();
        survey_.look_at_all(watch_);
        record_placements(3);
        record_estimates(true);
        statistics_.observing += record::now() - begin;
    });
    attempt([&] {
        if (mechanism_) mechanism_->process_ends(*this);
    });
    attempt([&] {
        move_rows_.write_rest(iteration_);
        for (const auto& area : watch_.areas()) { // what would have been tried once more
            const std::uint64_t pages = area->refused.waiting() * (area->granule / page_bytes());
            if (pages > 0) record_refusal(area->id, area->refused.error(), pages);
            statistics_.refused += pages;
        }
    });
    attempt([&] {
        allocation_plans().withdraw();
        if (const std::uint64_t placed = allocation_plans().placed(); placed > 0)
            record::message(record::Level::note, std::to_string(placed) +
                                                     " temporary arrays came into being where they are used: "
                                                     "their pages had a policy from their allocation on");
    });
    attempt([&] {
        policies_.clear_all();
        if (policies_.stuck_bytes() > 0)
            record::message(record::Level::not_done, "the memory policy of " +
                                                         std::to_string(policies_.stuck_bytes()) +
                                                         " bytes could not be given back");
    });
    attempt([&] {
        if (Simulation* simulated = simulation()) simulated->report();
        if (services_.record_tasks) services_.record_tasks();
    });
    attempt([&] { record_regions(regions_, watch_); });
    attempt([&] { record_unwatched(watch_); });
    if (!complete) {
        record::message(record::Level::not_done, "out of memory at the end: the last rows are missing");
        record::fact("end", "rows missing");
    }
    record_totals(record::now());
    record::close();
}

} // namespace homing
