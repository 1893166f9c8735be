#include "policy/stability.hpp"

#include <algorithm>
#include <cmath>

namespace homing::policy {

Stability::Stability(const StabilityOptions& options)
    : options_(options), interval_(std::max<std::uint64_t>(options.least_interval, 1)) {}

Activity Stability::begin_iteration() {
    ++since_wake_;
    if (state_ == Activity::observe) return state_;
    // A check whose result was never reported (nothing was touched) is made again in the next iteration.
    if (state_ == Activity::rest && ++since_check_ >= std::max(interval_, affordable_interval_))
        state_ = Activity::check;
    return state_;
}

void Stability::observed(std::uint64_t wanted_moves, std::uint64_t pages_considered) {
    if (state_ != Activity::observe) return;
    const double few = std::max(options_.few_share * static_cast<double>(pages_considered),
                                static_cast<double>(options_.few_pages));
    calm_ = static_cast<double>(wanted_moves) <= few ? calm_ + 1 : 0;
    ++rounds_;
    if (calm_ >= options_.calm_rounds) {
        settle();
    } else if (rounds_ >= options_.most_rounds) {
        gave_up_ = true;
        settle();
    }
}

void Stability::settle() {
    state_ = Activity::rest;
    since_check_ = 0;
    iterations_to_settle_ = since_wake_;
}

void Stability::checked(bool owners_changed) {
    if (state_ != Activity::check) return;
    if (owners_changed) {
        wake();
        return;
    }
    state_ = Activity::rest;
    since_check_ = 0;
    const double grown = static_cast<double>(interval_) * std::max(options_.growth, 1.0);
    interval_ = static_cast<std::uint64_t>(std::min(grown, static_cast<double>(options_.most_interval)));
}

void Stability::cost(double check_cost, double iteration_time) {
    if (!(check_cost >= 0) || !(iteration_time > 0) || !(options_.budget > 0)) return;
    const double iterations = std::ceil(check_cost / (options_.budget * iteration_time));
    affordable_interval_ = static_cast<std::uint64_t>(std::clamp(iterations, 1.0, 1e15));
}

void Stability::look() {
    if (state_ != Activity::rest) return;
    interval_ = std::max<std::uint64_t>(options_.least_interval, 1);
    since_check_ = std::max(interval_, affordable_interval_);
}

void Stability::wake() {
    state_ = Activity::observe;
    gave_up_ = false;
    calm_ = rounds_ = 0;
    interval_ = std::max<std::uint64_t>(options_.least_interval, 1);
    since_wake_ = since_check_ = 0;
    iterations_to_settle_ = 0;
}

} // namespace homing::policy
