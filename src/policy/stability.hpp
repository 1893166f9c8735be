// When to observe, when to rest, when to look again. A state machine over iterations, without a clock: counts
// and costs are passed in.
//
//   observing --(few wanted moves, `calm_rounds` times in a row)--> resting --(interval over)--> checking
//       ^                                                              ^                            |
//       |                                                              +-- unchanged: interval x2 --+
//       +----------------------- owners changed: interval back to the least -----------------------+
//
// A period that breaks, or another that is found, brings the next check forward.
#pragma once

#include <cstdint>

namespace homing::policy {

struct StabilityOptions {
    double few_share = 0.005;    // a round is calm if wanted moves <= few_share x pages considered ...
    std::uint64_t few_pages = 2; // ... or <= few_pages
    int calm_rounds = 2;
    int most_rounds = 64; // observing rounds without calm: rest all the same (nothing settles here)
    std::uint64_t least_interval = 8; // iterations between checks at first
    std::uint64_t most_interval = 4096;
    double growth = 2.0;
    double budget = 0.01; // share of the elapsed time that checks may cost
};

enum class Activity : std::uint8_t { observe, rest, check };

class Stability {
  public:
    explicit Stability(const StabilityOptions& options = {});

    // At the beginning of every iteration: what to do in it. O(1), no allocation.
    Activity begin_iteration();

    // After an observing iteration: moves that the policy wanted (whether or not the guard permitted them),
    // and pages that it considered. An iteration that gave no observation at all (nothing was touched) is not
    // reported.
    void observed(std::uint64_t wanted_moves, std::uint64_t pages_considered);
    // After a checking iteration.
    void checked(bool owners_changed);
    // What one check (or observation) cost, and what an iteration takes, in any one unit: the interval is
    // stretched so that checks stay within the budget.
    void cost(double check_cost, double iteration_time);

    // The caller knows of a change: observe again.
    void wake();
    // Something that may come with a change (the period broke, or another was found): where it rests, the
    // next iteration checks.
    void look();

    bool settled() const { return state_ != Activity::observe; }
    bool gave_up() const { return gave_up_; }
    std::uint64_t interval() const { return interval_; }
    // Iterations from the last wake (or start) until settled; 0 while not settled.
    std::uint64_t iterations_to_settle() const { return iterations_to_settle_; }

  private:
    void settle();

    StabilityOptions options_;
    Activity state_ = Activity::observe;
    bool gave_up_ = false;
    int calm_ = 0;
    int rounds_ = 0;
    std::uint64_t interval_;
    std::uint64_t affordable_interval_ = 1;
    std::uint64_t since_wake_ = 0;
    std::uint64_t since_check_ = 0;
    std::uint64_t iterations_to_settle_ = 0;
};

} // namespace homing::policy
