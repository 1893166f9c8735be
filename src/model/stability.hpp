// When to observe, when to rest, when to look again. A state machine over iterations, without a clock:
// counts, times and costs are passed in.
//
//   observing --(few wanted moves, calm_rounds times in a row)--> resting --(check is due)--> checking
//       ^                                                              ^                            |
//       |                                                              +---- unchanged: later ------+
//       +------------------------------------ owners changed ---------------------------------------+
//
// How often it checks. After a check that cost c, none is made before c / budget has passed: whatever checks
// cost, they never cost more than their share of the time. They come some iterations apart at first, and
// after each one that found nothing more, by tuning::growth: until there are tuning::slack times what the
// budget forces, or tuning::longest_wait, between them. So a change of owners is noticed within a small
// multiple of what the budget forces, however long the run has been calm.
//
// A period that breaks, or another that is found, brings the next check forward, within the budget.
#pragma once

#include "model/tuning.hpp"

#include <cstdint>

namespace homing::policy {

/// Are these so few of so many pages that it does not matter where they lie?
inline bool are_few(std::uint64_t pages, std::uint64_t of) {
    using namespace model::tuning;
    return pages <= few_pages || static_cast<double>(pages) <= negligible_part * static_cast<double>(of);
}

enum class Activity : std::uint8_t { observe, rest, check };

class Stability {
  public:
    /// budget: share of the time that checks may cost.
    explicit Stability(double budget = model::tuning::share_of_checks) : budget_(budget) {}

    // At the beginning of every iteration: what to do in it. O(1), no allocation. now: seconds of the
    // program's time, from any start, never falling.
    Activity begin_iteration(double now = 0);

    // After an observing iteration: moves that the policy wanted (whether or not the guard permitted them),
    // and pages that it considered. An iteration that gave no observation at all (nothing was touched) is not
    // reported.
    void observed(std::uint64_t wanted_moves, std::uint64_t pages_considered);
    // After a checking iteration.
    void checked(bool owners_changed);
    // What the newest check (or observation) cost, in seconds.
    void cost(double seconds);

    // The caller knows of a change: observe again.
    void wake();
    // Something that may come with a change (the period broke, or another was found): where it rests, the
    // next iteration that the budget permits checks.
    void look();

    bool settled() const { return state_ != Activity::observe; }

  private:
    bool is_due() const;
    void rest();

    double budget_;
    Activity state_ = Activity::observe;
    bool looked_ = false; // look() was called
    int calm_ = 0;
    int rounds_ = 0;
    std::uint64_t interval_ = model::tuning::few_iterations; // between checks
    double cost_ = 0;                                        // of the newest check
    double now_ = 0;
    double rest_began_ = 0; // with the newest check, or observation
    std::uint64_t since_check_ = 0;
};

} // namespace homing::policy
