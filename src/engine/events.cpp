// What the engine makes of the program's events: regions and barriers are one sequence, in which the outer
// iteration is found; where it shows nothing, guesses and time decide.
#include "engine/engine.hpp"
#include "engine/guarded.hpp"
#include "model/tuning.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <utility>

namespace homing {
namespace {

using namespace model::tuning;

/// Is an iteration followed from now on that is around the one of so many events, rather than as long?
bool is_longer(const phases::Step& step, std::uint32_t than) noexcept {
    const bool followed =
        step.event == phases::PeriodEvent::found || step.event == phases::PeriodEvent::upgraded;
    return followed && step.period >= clearly_more * std::uint64_t{than};
}

} // namespace

void Engine::region_begin(Address function) noexcept {
    if (__builtin_expect(resting_.load(std::memory_order_relaxed), 1)) {
        // Settled: follow the iteration, no clock, no work.
        const std::uint32_t region = regions_.index(function);
        const phases::Step step = finder_.push(region);
        follow_log_at_rest();
        if (__builtin_expect(step.event == phases::PeriodEvent::none, 1)) return;
        guarded([&] { step_at_rest(region, step); });
        return;
    }
    guarded([&] { event(function); });
}

/// The period broke, or another was found: owners may have changed. Where regions came that had not been seen
/// when the engine came to rest, or found an iteration, the program does something new: it is observed as at
/// its begin.
void Engine::another_iteration() {
    if (regions_.all().size() <= regions_known_) return stability_.look();
    regions_known_ = regions_.all().size();
    stability_.wake();
    guesses_ = 0;
    watch_.begin_phase();
    plan_.begin_anew(running_.seconds(record::now()));
}

/// What the program maps and unmaps goes on at rest, and the hooks' log has room for so much only.
void Engine::follow_log_at_rest() noexcept {
    if (__builtin_expect(mapping_log().is_filling(), 0)) guarded([&] { synchronise_areas(); });
}

/// Something has happened at rest, with which the region, or a part of it, begins.
void Engine::step_at_rest(std::uint32_t region, const phases::Step& step) {
    if (is_longer(step, period_)) {
        stability_.wake(); // what rests is an inner loop of the iteration
        period_ = step.period;
    } else if (step.event != phases::PeriodEvent::iteration_boundary) {
        another_iteration();
    }
    iteration_boundary(basis_);
    region_open_ = !resting_;
    enter(region);
    if (!resting_ && asks_) window_region_begins();
    region_begin_ = record::now();
    if (!resting_) statistics_.observing += region_begin_ - iteration_begin_; // a check begins
}

/// An event of the program's sequence: a region, or a barrier within one.
phases::Step Engine::follow(std::uint32_t region) {
    RegionInfo& info = regions_[region];
    ++info.count;
    ++info.in_iteration;
    ++events_;
    ++events_in_iteration_;
    if (called_) return {};
    const phases::Step step = finder_.push(info.is_barrier ? region | phases::within_region : region);
    if (step.event == phases::PeriodEvent::broken) another_iteration();
    if (step.event == phases::PeriodEvent::found) regions_known_ = regions_.all().size();
    // Of a longer iteration only a loop is known so far.
    if (stability_.settled() && is_longer(step, period_)) stability_.wake();
    return step;
}

/// Does an iteration end here, by the step that the finder took, by a guess, or by time?
void Engine::boundary_by(std::uint32_t region, const phases::Step& step, double now) {
    if (called_) return;
    if (step.iteration_begins) {
        period_ = step.period;
        iteration_boundary(regions_[region].is_barrier ? Basis::barriers
                           : finder_.by_anchor()       ? Basis::anchor
                                                       : Basis::period);
    } else if (!finder_.found() && guesses_ < most_guesses && asks_ && has_enough_references()) {
        // No period is known yet, but enough was seen of pages that had been initialised before: this is
        // computation. The guard decides whether that is worth a move.
        ++guesses_;
        iteration_boundary(Basis::guess);
    } else if (!finder_.found() && events_ > first_events && now > next_tick_) {
        follow_time(now);
    }
}

/// Time decides where nothing else does.
void Engine::follow_time(double now) {
    iteration_boundary(Basis::time);
    tick_ = std::min(tick_ * growth, stability_.settled() ? longest_wait : scan_interval);
    next_tick_ = now + tick_;
}

/// A region begins, or goes on: what is to be observed in it.
void Engine::part_begins(std::uint32_t region, double now) {
    const double elsewhere = statistics_.deciding + statistics_.moving;
    enter(region);
    if (scans()) region_log_.enter(region, now);
    if (windows_ && (activity_ != policy::Activity::rest || mechanism_->needs_windows() || called_touch_))
        follow_changes();
    if (called_touch_) close_window();
    if (called_touch_ && called_touch_->region_begins(*this, region))
        window_open_ = true;
    else if (mechanism_->region_begins(*this, region))
        window_open_ = true;
    else if (asks_ && activity_ != policy::Activity::rest)
        window_region_begins();
    region_begin_ = record::now();
    const double spent = region_begin_ - now - (statistics_.deciding + statistics_.moving - elsewhere);
    statistics_.observing += spent;
    spent_in_iteration_ += spent;
}

void Engine::event(Address id) {
    const double now = record::now();
    const std::uint32_t region = regions_.index(id);
    serial_code_ends();
    const phases::Step step = follow(region);
    if (events_ <= first_events && source_running_ && samples_itself()) source_->follow_threads();
    const double elsewhere = statistics_.deciding + statistics_.moving;
    boundary_by(region, step, now);
    const double apart = statistics_.deciding + statistics_.moving - elsewhere;
    part_begins(region, now + apart);
    region_open_ = !resting_;
    want_helper();
}

/// While no iteration is known, a region may be one that shows nothing for long.
void Engine::want_helper() {
    if (resting_ || called_ || finder_.found() || threads_ < 2 || !services_.may_have_helper ||
        helper_.is_running())
        return;
    helper_saw_ = 0;
    idle_looks_ = 0;
    helper_.start([](void* self) noexcept { return static_cast<Engine*>(self)->time_passes(); }, this,
                  short_time);
}

double Engine::time_passes() noexcept {
    constexpr double no_more = -1;
    if (finished_.load(std::memory_order_acquire) || resting_.load(std::memory_order_relaxed)) return no_more;
    double next = short_time;
    helper_works_.store(true, std::memory_order_seq_cst);
    guarded([&] {
        if (resting_ || called_ || finder_.found()) {
            next = no_more;
            return;
        }
        idle_looks_ = region_open_ ? 0 : idle_looks_ + 1;
        if (idle_looks_ > static_cast<int>(chances)) next = no_more;
        const bool quiet = std::exchange(helper_saw_, events_) == events_;
        const double now = record::now();
        if (!region_open_ || !quiet || !phases::ends_are_known()) return;
        // What is armed to be moved at its next touch waits for the whole region.
        if (called_touch_ || mechanism_->needs_windows()) return;
        if (now < next_tick_) {
            next = std::max(next_tick_ - now, short_time / 10);
            return;
        }
        // The team is at work: what is armed now is guarded as what is armed at a barrier, where the others
        // may still be at work, too.
        const std::uint32_t region = open_.region;
        open_region_ends(now);
        follow_time(now);
        part_begins(region, record::now());
        next = std::max(next_tick_ - record::now(), short_time / 10);
    });
    helper_works_.store(false, std::memory_order_seq_cst);
    return next;
}

void Engine::region_end() noexcept {
    if (__builtin_expect(resting_.load(std::memory_order_relaxed) && !window_open_ && !call_waits_, 1))
        return;
    guarded([&] {
        const double now = record::now();
        open_region_ends(now);
        region_open_ = false;
        if (call_waits_) called_boundary();
        const double spent = record::now() - now;
        statistics_.observing += spent;
        spent_in_iteration_ += spent;
    });
}

/// Barriers and regions are one sequence of events: a region with many of them is part of the iteration
/// around it, and where one region is all there is, they tell the iteration.
bool Engine::barrier(Address site) noexcept {
    if (resting_.load(std::memory_order_relaxed) && !call_waits_) {
        const std::uint32_t region = regions_.index(site, true);
        const phases::Step step = finder_.push(region | phases::within_region);
        follow_log_at_rest();
        if (__builtin_expect(step.event == phases::PeriodEvent::none, 1)) return false;
        bool tells = false;
        guarded([&] {
            before_barrier_ = Site::outside(); // at rest nothing is entered
            if (window_open_) open_region_ends(record::now());
            step_at_rest(region, step);
            tells = window_open_;
        });
        return tells;
    }
    bool tells = false;
    guarded([&] {
        const double now = record::now();
        const std::uint32_t region = regions_.index(site, true);
        check_window(now);
        const phases::Step step = follow(region);
        if (!step.iteration_begins && !call_waits_ && now - region_begin_ < least_part_of_region) return;
        before_barrier_ = open_;
        open_region_ends(now);
        const double elsewhere = statistics_.deciding + statistics_.moving;
        if (call_waits_)
            called_boundary();
        else
            boundary_by(region, step, now);
        part_begins(region, now + statistics_.deciding + statistics_.moving - elsewhere);
        tells = window_open_;
    });
    return tells;
}

/// What others touched on their way to the barrier, while the driving thread waited there, is of the part
/// before it. (Counted for NPB FT: a fifth of the first touches of a part were of the one before, which uses
/// the array in another way.)
void Engine::barrier_passed() noexcept {
    guarded([&] {
        if (window_open_ && windows_ && windows_->is_open() && windows_->touches() != touches_taken_)
            take_touches_of(before_barrier_);
    });
}

void Engine::iteration_called() noexcept {
    guarded([&] { called_boundary(); });
}

void Engine::called_boundary() {
    call_waits_ = false;
    if (!std::exchange(called_, true)) {
        // The program tells its iterations. What was found before were loops within its first one.
        statistics_.iterations = 0;
        statistics_.settled_at = 0;
    }
    resting_ = false;
    iteration_boundary(Basis::call);
}

} // namespace homing
