// What the engine leaves: the rows of the record, and the end of the process.
#include "engine/engine.hpp"

#include "areas/allocation_plans.hpp"

#include "areas/areas.hpp"
#include "base/floating_point.hpp"
#include "base/inside.hpp"
#include "base/uncancelled.hpp"
#include "kernel/own_pages.hpp"
#include "machine/simulation.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <ctime>
#include <map>
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
/// An iteration has a row where a round of observation ended with it (at rest none does): up to this number
/// each of them, then those in which something was seen or moved.
constexpr std::uint32_t recorded_iterations = 2000;
constexpr std::size_t most_unwatched = 24;
/// Naps of a millisecond that the end of the process waits for the helper.
constexpr int most_naps = 2500;

std::uint32_t state_of(policy::Activity activity, const policy::Stability& stability) {
    if (activity == policy::Activity::rest || stability.settled()) return 3;
    return 2;
}

} // namespace

void Engine::record_iteration(double now, std::uint64_t references, std::uint64_t moved) {
    if (iteration_ > recorded_iterations && moved == 0 && references == 0) return;
    record::iteration_row row;
    row.number = iteration_;
    row.time = iteration_begin_;
    row.seconds = now - iteration_begin_;
    row.regions = events_in_iteration_;
    row.state = basis_ == Basis::none ? 1 : state_of(activity_, stability_);
    row.basis = static_cast<record::u32>(basis_);
    row.references = references;
    row.moved = moved;
    row.overhead_seconds = spent_in_iteration_;
    record::append(row);
}

void Engine::record_overhead(double now) noexcept {
    record::overhead_row row;
    row.time = now;
    row.observing = statistics_.observing;
    row.deciding = statistics_.deciding;
    row.moving = statistics_.moving;
    row.faults = statistics_.references;
    if (windows_) {
        const Windows::Costs costs = windows_->costs();
        row.faults = costs.faults;
        row.armed = costs.armed;
        row.touches = costs.touches;
        row.calls = costs.arm_calls + costs.back_calls + costs.touches;
    }
    row.region_events = events_;
    record::append(row);
}

void Engine::record_placements(std::uint32_t when) {
    for (const auto& area : watch_.areas())
        if (when != 1 || (area->seen && !area->found_recorded)) record_placement(*area, when);
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
    if (pages * placement_sample >= area.base_pages()) record_placement(area, 2);
}

void Engine::record_refusal(std::uint32_t area, int error, std::uint64_t pages) {
    record::refusal_row row;
    row.area = area;
    row.error = error;
    row.pages = pages;
    row.iteration = iteration_;
    record::append(row);
}

void Engine::pages_placed(Range range, const PlacementResult& result) noexcept {
    pages_placed();
    if (result.moved + result.refused == 0 || finished_.load(std::memory_order_acquire)) return;
    const WatchedArea* area = watch_.find(range.begin);
    if (area && range.end > area->range.end) area = nullptr;
    record_moves(area ? area->id : many_areas, result.moved + result.refused, result);
}

void Engine::record_moves(std::uint32_t area, std::uint64_t wanted, const Moves& moves) {
    record::move_row row;
    row.area = area;
    row.time = record::now();
    row.wanted = wanted;
    row.moved = moves.moved;
    row.refused = moves.refused;
    row.bytes = moves.moved * page_bytes();
    row.seconds = moves.seconds;
    row.longest_call_seconds = moves.longest_call;
    row.calls = moves.calls;
    row.iteration = iteration_;
    record::append(row);
    for (const auto& [error, pages] : moves.errors)
        record_refusal(area, error, pages);
    statistics_.moved += moves.moved;
    statistics_.refused += moves.refused;
    statistics_.moving += moves.seconds;
}

void Engine::record_estimates(bool all) {
    for (const auto& area : watch_.areas())
        if (all ? !area->remote_share.empty() : area->remote_share.has_news()) record_estimate(*area);
}

void Engine::record_estimate(WatchedArea& area) {
    std::vector<int> homes;
    mover_.homes(area, area.remote_share.granules(), homes);
    const RemoteSums sums = area.remote_share.sums(homes, area.there(), samples_accesses());
    if (sums.granules == 0) return;
    record::estimate_row row;
    row.area = area.id;
    row.iteration = iteration_;
    row.granules = static_cast<record::u32>(sums.granules);
    row.by_access = samples_accesses();
    row.time = record::now();
    row.touches = sums.touches;
    row.traffic = traffic(area);
    row.weight = sums.weight;
    row.weight2 = sums.weight2;
    row.before = sums.before.share;
    row.before1 = sums.before.share1;
    row.before2 = sums.before.share2;
    row.after = sums.after.share;
    row.after1 = sums.after.share1;
    row.after2 = sums.after.share2;
    record::append(row);
}

void Engine::record_placement(WatchedArea& area, std::uint32_t when) {
    if (touch_record_.enabled() && when != 2) record_homes(area, when);
    // Evenly spread over what exists.
    const PageSet& there = area.there();
    const std::uint64_t most =
        when == 2 ? sample_on_the_way
                  : std::clamp(placement_samples / std::max<std::size_t>(1, watch_.areas().size()),
                               least_placement_sample, placement_sample);
    const std::uint64_t count = area.seen ? std::min(there.size(), most) : 0;
    std::vector<std::uint64_t> granules;
    // Quotient and remainder apart, so that nothing overflows.
    for (std::uint64_t i = 0; i < count; ++i)
        granules.push_back(there.at(there.size() / count * i + there.size() % count * i / count));
    std::vector<int> homes;
    mover_.homes(area, granules, homes);
    std::vector<std::uint64_t> held(static_cast<std::size_t>(nodes_.count()), 0);
    std::uint64_t absent = 0;
    for (const int home : homes) {
        if (home >= 0)
            ++held[static_cast<std::size_t>(home)];
        else
            ++absent;
    }
    const std::uint64_t looked_at = std::min(there.size() * area.granule, area.range.bytes()) / page_bytes();
    const double scale =
        static_cast<double>(looked_at) / static_cast<double>(std::max<std::uint64_t>(1, count));
    const auto pages = [&](std::uint64_t sampled) {
        return static_cast<std::uint64_t>(static_cast<double>(sampled) * scale + 0.5);
    };
    // What is not there was looked at, too.
    const std::uint64_t elsewhere = area.base_pages() - (count > 0 ? looked_at : 0);
    if (when == 1 && absent == count) return; // not populated yet: nothing was found
    area.found_recorded = true;
    for (std::size_t first = 0; first < held.size(); first += 8) {
        record::placement_row row;
        row.area = area.id;
        row.time = record::now();
        row.when = when;
        row.first = static_cast<record::u32>(first);
        row.sampled = count < there.size() || area.in_part;
        row.iteration = iteration_;
        for (std::size_t k = first; k < std::min(held.size(), first + 8); ++k)
            row.pages[k - first] = pages(held[k]);
        row.absent = pages(absent) + elsewhere;
        record::append(row);
    }
}

/// The largest pieces of memory that are not watched, by what they are, and why.
void Engine::record_unwatched() {
    std::vector<Range> known = own_ranges();
    std::size_t watched = 0;
    for (const WatchedRange& range : watch_.ranges()) {
        known.push_back(range.range);
        watched += range.range.bytes();
    }
    // What the user left out is one row for each name.
    std::map<std::string, Unwatched> left_out;
    for (const auto& [range, reason] : watch_.left_out()) {
        Unwatched& one = left_out.try_emplace(reason, Range{range.begin, range.begin}, reason).first->second;
        one.range.end += range.bytes();
        known.push_back(pages_of(range));
    }
    std::vector<Unwatched> unwatched = unwatched_mappings(
        known, std::clamp(watched / unwatched_share, std::min(unwatched_minimum, 16 * page_bytes()),
                          unwatched_minimum));
    for (const auto& [reason, one] : left_out)
        unwatched.push_back(one);
    std::sort(unwatched.begin(), unwatched.end(),
              [](const Unwatched& a, const Unwatched& b) { return a.range.bytes() > b.range.bytes(); });
    // The rest of a kind is told with the first of it.
    for (; unwatched.size() > most_unwatched; unwatched.pop_back()) {
        const auto first = std::ranges::find(unwatched, unwatched.back().what, &Unwatched::what);
        if (first != unwatched.end() - 1) first->range.end += unwatched.back().range.bytes();
    }
    for (const Unwatched& one : unwatched) {
        record::unwatched_row row;
        row.what = record::text(one.what);
        row.begin = one.range.begin;
        row.bytes = one.range.bytes();
        record::append(row);
    }
    if (const std::uint64_t blocks = area_registry().dropped())
        record::message(record::Level::note,
                        std::to_string(blocks) +
                            " blocks are not watched: the table of large blocks has room for " +
                            std::to_string(AreaRegistry::capacity));
    if (const std::uint64_t bytes = block_cover().dropped())
        record::message(record::Level::note,
                        std::to_string(bytes >> 20) +
                            " MiB of small blocks are not watched: no room in homing's tables");
    for (const AreaFilter::Rule& rule : watch_.rules()) {
        record::rule_row row;
        row.text = record::text(rule.text());
        row.areas = rule.areas;
        record::append(row);
        if (!rule.matched)
            record::message(record::Level::warning, "--areas " + rule.text() + ": no area has such a name");
    }
}

void Engine::record_regions() {
    for (std::uint32_t i = 0; i < regions_.all().size(); ++i) {
        const RegionInfo& info = regions_.all()[i];
        record::region_row row;
        row.id = i;
        row.offset = info.function;
        if (const ObjectPlace place = watch_.recorded_place(info.function); place.file) {
            row.object = record::text(place.file->path);
            row.offset = place.offset;
            row.symbol = record::text(watch_.symbol(info.function));
        }
        row.count = info.count;
        row.seconds = info.seconds;
        record::append(row);
    }
}

/// Allocates nothing.
void Engine::record_totals(double now) noexcept {
    record_overhead(now);
    record::end_row row;
    row.time = now;
    row.parallel_seconds = parallel_seconds_;
    row.iterations = iteration_;
    row.settled_at = static_cast<record::u32>(statistics_.settled_at);
    row.period = period_;
    row.live_areas = watch_.areas().size();
    row.dropped_areas = area_registry().dropped();
    record::append(row);
}

void Engine::abandon() noexcept {
    finished_.store(true, std::memory_order_seq_cst);
    helper_.abandon();
    allocation_plans().withdraw(); // a child's own blocks are not those of the team
    if (windows_) windows_->abandon();
    if (sampled_) sampled_->abandon();
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
    attempt([&] { record_regions(); });
    attempt([&] { record_unwatched(); });
    if (!complete) {
        record::message(record::Level::not_done, "out of memory at the end: the last rows are missing");
        record::fact("end", "rows missing");
    }
    record_totals(record::now());
    record::close();
}

} // namespace homing
