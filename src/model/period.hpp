// Where the program is: finds its outer iteration in the sequence of parallel regions that it enters, and of
// the barriers within them. Pure: ids in, events out; no clock, fixed memory, nothing is allocated after
// construction.
//
// Call push() when a region begins, or the driver comes to a barrier, before it runs: "a new iteration
// begins" is said at the region that starts it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace homing::phases {

// Ids of events within a region (its barriers) carry this bit. An iteration begins with a region wherever it
// has one: the team is at rest there.
inline constexpr std::uint32_t within_region = std::uint32_t{1} << 31;
inline bool is_within_region(std::uint32_t id) { return (id & within_region) != 0; }

enum class PeriodEvent : std::uint8_t {
    none,
    found,    // a period is followed from now on
    upgraded, // a longer one replaces it: what was found was an inner loop of it
    iteration_boundary,
    broken, // the period is lost; searching again
};

struct Step {
    PeriodEvent event = PeriodEvent::none;
    // This region starts a new iteration. True with event iteration_boundary, and possibly with found and
    // upgraded.
    bool iteration_begins = false;
    std::uint32_t period =
        0; // regions an iteration (of the last iteration where they vary); 0 while none is followed
};

// Exact repetition. Finds the smallest period whose current run is within 90 % of the longest current run of
// any period up to longest_period; a run must hold two whole periods and at least least_run regions.
//
// Inner periods appear first (a solver that repeats 25 times inside the time step), so a period that is
// followed goes on being challenged: the search continues for `trial` regions, after which no period up to
// longest_period can enclose it, and a longer period that explains clearly more of the recent past replaces
// it. A period that broke must beat its own longest run (by at most `handicap` regions more than otherwise)
// to be found again, so that an inner loop of constant length is reported once, not in every iteration.
//
// Breaks: one foreign region is tolerated anywhere when at least max(period, 9) regions matched since the
// last one (an output or a norm every so often); the region after it must be the expected one. Where all of
// the period is barriers of one region, a region is not foreign: what it ends is a loop within the iteration.
// Anything else breaks the period.
//
// Cost: while following beyond the trial, one comparison; while searching, O(longest_period), vectorised.
class PeriodFinder {
  public:
    static constexpr std::uint32_t longest_period = 1024;
    static constexpr std::uint32_t least_run = 8;
    static constexpr std::uint32_t trial = 2 * longest_period + 256;
    static constexpr std::uint32_t handicap = 32;
    static constexpr std::uint32_t no_id = ~std::uint32_t{0}; // the one id that must not be pushed

    PeriodFinder();

    Step push(std::uint32_t id) {
        if (fast_ && id == pattern_[position_]) {
            ++matched_;
            ++since_foreign_;
            const bool begins = position_ == 0;
            if (++position_ == period_) position_ = 0;
            iterations_ += begins;
            return {begins ? PeriodEvent::iteration_boundary : PeriodEvent::none, begins, period_};
        }
        return push_slowly(id);
    }

    std::uint32_t period() const { return period_; }
    // Position of the region that was pushed last; no_id while none is followed.
    std::uint32_t newest() const { return period_ ? (position_ + period_ - 1) % period_ : no_id; }
    // Iterations of the followed period that have begun in its run, counted from the run's start; 0 while
    // none is followed.
    std::uint64_t stable_for() const { return iterations_; }
    // Regions that followed the period in its run.
    std::uint64_t matched() const { return matched_; }
    // No longer period can replace this one any more; push() costs a comparison.
    bool settled() const { return settled_; }
    // What was followed until it broke: the iteration, where in it another id was expected, and the foreign
    // id right before that, or no_id. True until another period is followed.
    struct Broken {
        std::span<const std::uint32_t> iteration;
        std::uint32_t position = 0;
        std::uint32_t foreign = no_id;
        std::uint64_t matched = 0; // ids that followed it
    };
    const Broken& broken() const { return broken_; }
    void reset();

  private:
    Step push_slowly(std::uint32_t id);
    Step search(std::uint32_t id);
    Step go_on(std::uint32_t id);
    Step challenge(std::uint32_t id);
    Step break_off();
    bool advance(std::uint32_t id);
    bool tolerates(std::uint32_t id) const;
    std::uint32_t remember(std::uint32_t id);
    std::uint32_t smallest_near(std::uint32_t longest) const;
    std::uint32_t run_length(std::uint32_t period) const { return run_[period - 1] + period; }
    std::uint32_t needed_run(std::uint32_t period) const;
    Step follow(std::uint32_t period, PeriodEvent event);
    void forget_history();

    // Newest first from head_ on: history_[head_ + p - 1] is the id p regions ago, so that one id is compared
    // with contiguous memory.
    alignas(64) std::array<std::uint32_t, 2 * longest_period> history_;
    alignas(
        64) std::array<std::uint32_t, longest_period> run_; // [p-1]: ids in a row that equal the one p ago
    std::array<std::uint32_t, longest_period> record_;      // [p-1]: longest followed run that broke
    std::array<std::uint32_t, longest_period> pattern_;     // the followed iteration
    std::uint32_t head_ = longest_period;
    std::uint32_t period_ = 0; // 0: searching
    std::uint32_t position_ = 0;
    bool settled_ = false; // the trial is over: history_ and run_ are not kept up
    bool fast_ = false;    // settled, and no foreign region is pending
    bool within_ = false;  // all of the period are events within a region
    bool foreign_pending_ = false;
    std::uint32_t foreign_id_ = no_id;
    Broken broken_;
    std::uint64_t matched_ = 0;
    std::uint64_t since_foreign_ = 0;
    std::uint64_t followed_ = 0;
    std::uint64_t iterations_ = 0;
    std::uint64_t searched_ = 0;
};

} // namespace homing::phases
