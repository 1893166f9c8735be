// When to observe, when to rest, when to look again. A state machine over iterations, without a clock:
// counts, times and costs are passed in.
//
//   observing --(few wanted moves, `calm_rounds` times in a row)--> resting --(check is due)--> checking
//       ^                                                              ^                            |
//       |                                                              +---- unchanged: later ------+
//       +------------------------------------ owners changed ---------------------------------------+
//
// How often it checks. After a check that cost c, none is made before c / budget has passed: whatever checks
// cost, they never cost more than their share of the time. They come some iterations apart at first, and
// after each one that found nothing twice as many: until there are `slack` times what the budget forces, or
// `most_seconds`, between them. So a change of owners is noticed within a small multiple of what the budget
// forces, however long the run has been calm.
//
// A period that breaks, or another that is found, brings the next check forward, within the budget.
#pragma once

#include <cstdint>

namespace homing::policy {

struct StabilityOptions {
    double few_share = 0.005;    // a round is calm if wanted moves <= few_share x pages considered ...
    std::uint64_t few_pages = 2; // ... or <= few_pages
    int calm_rounds = 2;
    int most_rounds = 64; // observing rounds without calm: rest all the same (nothing settles here)
    std::uint64_t least_interval = 8;   // iterations between checks at first
    std::uint64_t most_interval = 4096; // and at the most where neither times nor costs are told
    double growth = 2.0;
    double budget = 0.01;     // share of the time that checks may cost
    double slack = 4.0;       // checks come no later than at so many times what the budget forces ...
    double most_seconds = 10; // ... or after this time, whichever is sooner and within the budget
};

enum class Activity : std::uint8_t { observe, rest, check };

class Stability {
  public:
    explicit Stability(const StabilityOptions& options = {});

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

    StabilityOptions options_;
    Activity state_ = Activity::observe;
    bool looked_ = false; // look() was called
    int calm_ = 0;
    int rounds_ = 0;
    std::uint64_t interval_; // iterations
    double cost_ = 0;        // of the newest check
    double now_ = 0;
    double rest_began_ = 0; // with the newest check, or observation
    std::uint64_t since_check_ = 0;
};

} // namespace homing::policy
