#include "model/stability.hpp"

#include <algorithm>
#include <limits>

namespace homing::policy {

using namespace model::tuning;

Activity Stability::begin_iteration(double now) {
    now_ = std::max(now, now_);
    if (state_ == Activity::observe) return state_;
    ++since_check_;
    // A check whose result was never reported (nothing was touched) is made again in the next iteration.
    if (state_ == Activity::rest && is_due()) state_ = Activity::check;
    return state_;
}

bool Stability::is_due() const {
    const double earned = budget_ * (now_ - rest_began_);
    if (earned < cost_) return false;
    if (looked_ || since_check_ >= interval_ || now_ - rest_began_ >= longest_wait) return true;
    // Of very short iterations several make a check worth while, even where it costs next to nothing.
    return cost_ > 0 && since_check_ >= few_iterations && earned >= slack * cost_;
}

void Stability::observed(std::uint64_t wanted_moves, std::uint64_t pages_considered) {
    if (state_ != Activity::observe) return;
    calm_ = are_few(wanted_moves, pages_considered) ? calm_ + 1 : 0;
    if (calm_ >= calm_rounds || ++rounds_ >= most_rounds) rest();
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
    interval_ = std::min<std::uint64_t>(growth * interval_, std::numeric_limits<std::uint32_t>::max());
}

void Stability::cost(double seconds) {
    if (seconds >= 0) cost_ = seconds;
}

void Stability::look() {
    if (state_ != Activity::rest) return;
    interval_ = few_iterations;
    looked_ = true;
}

void Stability::wake() {
    state_ = Activity::observe;
    looked_ = false;
    calm_ = rounds_ = 0;
    interval_ = few_iterations;
    since_check_ = 0;
}

} // namespace homing::policy
