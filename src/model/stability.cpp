#include "model/stability.hpp"

#include <algorithm>

namespace homing::policy {

Stability::Stability(const StabilityOptions& options)
    : options_(options), interval_(std::max<std::uint64_t>(options.least_interval, 1)) {}

Activity Stability::begin_iteration(double now) {
    now_ = std::max(now, now_);
    if (state_ == Activity::observe) return state_;
    ++since_check_;
    // A check whose result was never reported (nothing was touched) is made again in the next iteration.
    if (state_ == Activity::rest && is_due()) state_ = Activity::check;
    return state_;
}

bool Stability::is_due() const {
    const double earned = options_.budget * (now_ - rest_began_);
    if (options_.budget > 0 && earned < cost_) return false;
    if (looked_ || since_check_ >= interval_ || now_ - rest_began_ >= options_.most_seconds) return true;
    // Of very short iterations several make a check worth while, even where it costs next to nothing.
    return cost_ > 0 && since_check_ >= options_.least_interval && earned >= options_.slack * cost_;
}

void Stability::observed(std::uint64_t wanted_moves, std::uint64_t pages_considered) {
    if (state_ != Activity::observe) return;
    const double few = std::max(options_.few_share * static_cast<double>(pages_considered),
                                static_cast<double>(options_.few_pages));
    calm_ = static_cast<double>(wanted_moves) <= few ? calm_ + 1 : 0;
    ++rounds_;
    if (calm_ >= options_.calm_rounds || rounds_ >= options_.most_rounds) rest();
}

void Stability::rest() {
    state_ = Activity::rest;
    looked_ = false;
    since_check_ = 0;
    rest_began_ = now_;
}

void Stability::checked(bool owners_changed) {
    if (state_ != Activity::check) return;
    if (owners_changed) {
        wake();
        return;
    }
    rest();
    const double grown = static_cast<double>(interval_) * std::max(options_.growth, 1.0);
    interval_ = static_cast<std::uint64_t>(std::min(grown, static_cast<double>(options_.most_interval)));
}

void Stability::cost(double seconds) {
    if (seconds >= 0) cost_ = seconds;
}

void Stability::look() {
    if (state_ != Activity::rest) return;
    interval_ = std::max<std::uint64_t>(options_.least_interval, 1);
    looked_ = true;
}

void Stability::wake() {
    state_ = Activity::observe;
    looked_ = false;
    calm_ = rounds_ = 0;
    interval_ = std::max<std::uint64_t>(options_.least_interval, 1);
    since_check_ = 0;
}

} // namespace homing::policy
