#include "model/period.hpp"

#include "base/lanes.hpp"
#include "model/tuning.hpp"

#include <algorithm>
#include <cstring>

namespace homing::phases {

using namespace model::tuning;

PeriodFinder::PeriodFinder() { reset(); }

void PeriodFinder::reset() {
    forget_history();
    record_.fill(0);
    pattern_.fill(no_id);
    period_ = position_ = 0;
    settled_ = fast_ = foreign_pending_ = false;
    matched_ = since_foreign_ = followed_ = iterations_ = searched_ = 0;
}

void PeriodFinder::forget_history() {
    history_.fill(no_id);
    run_.fill(0);
    head_ = longest_period;
}

// Updates the run of every period and returns the length of the longest run among the periods of which two
// whole iterations were seen (0: none).
std::uint32_t PeriodFinder::remember(std::uint32_t id) {
    const std::uint32_t* past = history_.data() + head_;
    const auto key = static_cast<std::int32_t>(id);
    const Lanes wanted = {key, key, key, key};
    Lanes period = {1, 2, 3, 4};
    Lanes longest = {0, 0, 0, 0};
    for (std::uint32_t i = 0; i < longest_period; i += lanes) {
        const Lanes equal = load(past + i) == wanted;
        const Lanes run = (load(run_.data() + i) + 1) & equal;
        store(run_.data() + i, run);
        const Lanes length = (run + period) & (run >= period);
        longest = longest > length ? longest : length;
        period += static_cast<std::int32_t>(lanes);
    }
    if (head_ == 0) {
        std::memcpy(history_.data() + longest_period, history_.data(), sizeof(history_) / 2);
        head_ = longest_period;
    }
    history_[--head_] = id;
    return static_cast<std::uint32_t>(
        std::max(std::max(longest[0], longest[1]), std::max(longest[2], longest[3])));
}

// The smallest period with two whole iterations whose run is within 90 % of the longest.
std::uint32_t PeriodFinder::smallest_near(std::uint32_t longest) const {
    for (std::uint32_t period = 1; period <= longest_period; ++period)
        if (run_[period - 1] >= period &&
            10 * std::uint64_t{run_length(period)} >= 9 * std::uint64_t{longest})
            return period;
    return 0;
}

std::uint32_t PeriodFinder::needed_run(std::uint32_t period) const {
    const std::uint32_t usual = std::max(2 * period, least_run);
    const std::uint32_t beaten = record_[period - 1] + 1;
    return std::max(usual, std::min(beaten, usual + handicap));
}

// The iteration starts where the run did, or at the first region after that where it did so within one.
Step PeriodFinder::follow(std::uint32_t period, PeriodEvent event) {
    const std::uint32_t length = run_length(period);
    // The run may be longer than what is remembered, but it repeats: its newest iteration has all its ids.
    const auto in_run = [&](std::uint32_t at) { return history_[head_ + (length - 1 - at) % period]; };
    std::uint32_t start = 0;
    while (start < period && is_within_region(in_run(start)))
        ++start;
    within_ = start == period;
    if (within_) start = 0; // one region is all there is
    for (std::uint32_t at = 0; at < period; ++at)
        pattern_[at] = in_run(start + at);
    // The newest id lies at offset (length - 1) in the run.
    const std::uint32_t since_start = length - 1 - start;
    period_ = period;
    position_ = (since_start + 1) % period;
    matched_ = since_foreign_ = length;
    iterations_ = since_start / period + 1;
    followed_ = searched_ = 0;
    foreign_pending_ = settled_ = fast_ = false;
    return {event, since_start % period == 0, period};
}

// Moves on in the pattern if the id is the expected one.
bool PeriodFinder::advance(std::uint32_t id) {
    if (id != pattern_[position_]) return false;
    ++matched_;
    ++since_foreign_;
    iterations_ += position_ == 0;
    if (++position_ == period_) position_ = 0;
    return true;
}

/// Of an id that is not the expected one.
bool PeriodFinder::tolerates(std::uint32_t id) const {
    return !foreign_pending_ && since_foreign_ >= std::max(period_, chances) &&
           (!within_ || is_within_region(id));
}

Step PeriodFinder::break_off() {
    auto& record = record_[period_ - 1];
    record = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(record, std::min<std::uint64_t>(matched_, 1u << 30)));
    broken_ = {{pattern_.data(), period_}, position_, foreign_pending_ ? foreign_id_ : no_id, matched_};
    period_ = position_ = 0;
    settled_ = fast_ = foreign_pending_ = false;
    matched_ = since_foreign_ = followed_ = iterations_ = searched_ = 0;
    return {PeriodEvent::broken, false, 0};
}

Step PeriodFinder::search(std::uint32_t id) {
    const std::uint32_t longest = remember(id);
    // An enclosing period would have shown by now, so the broken ones were not its inner loops.
    if (++searched_ == 2 * longest_period) record_.fill(0);
    if (longest < least_run) return {};
    const std::uint32_t period = smallest_near(longest);
    if (period == 0 || run_length(period) < needed_run(period)) return {};
    return follow(period, PeriodEvent::found);
}

// The next id of the period that is followed, or one that is not of it.
Step PeriodFinder::go_on(std::uint32_t id) {
    const bool begins = position_ == 0;
    if (advance(id)) {
        if (foreign_pending_) since_foreign_ = 1;
        foreign_pending_ = false;
        fast_ = settled_;
        return {begins ? PeriodEvent::iteration_boundary : PeriodEvent::none, begins, period_};
    }
    if (!tolerates(id)) return break_off();
    foreign_pending_ = true;
    fast_ = false;
    foreign_id_ = id;
    return {PeriodEvent::none, false, period_};
}

// Follows a period on trial: a longer one may still replace it.
Step PeriodFinder::challenge(std::uint32_t id) {
    const std::uint32_t longest = remember(id);
    if (9 * std::uint64_t{longest} > 10 * matched_) {
        const std::uint32_t period = smallest_near(longest);
        if (period > period_ && run_length(period) >= needed_run(period))
            return follow(period, PeriodEvent::upgraded);
    }
    const Step step = go_on(id);
    if (period_ != 0 && !foreign_pending_ && ++followed_ >= trial) settled_ = fast_ = true;
    return step;
}

Step PeriodFinder::push_slowly(std::uint32_t id) {
    if (period_ == 0) return search(id);
    if (!settled_) return challenge(id);
    const bool pending = foreign_pending_;
    const Step step = go_on(id);
    if (step.event != PeriodEvent::broken) return step;
    forget_history(); // it ends where the trial did
    if (pending) remember(foreign_id_);
    remember(id);
    return step;
}

} // namespace homing::phases
