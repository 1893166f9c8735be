// Where the program is: finds its outer iteration in the sequence of parallel regions that it enters. Pure:
// region ids in, events out; no clock, fixed memory, nothing is allocated after construction.
//
// Call push() when a region begins, before it runs: "a new iteration begins" is said at the region that
// starts it.
#pragma once

#include <array>
#include <cstdint>

namespace homing::phases {

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
// last one (an output or a norm every so often); the region after it must be the expected one. Anything else
// breaks the period.
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
    // Position in the iteration of the region that would come next, 0..period-1.
    std::uint32_t position() const { return position_; }
    // Position of the region that was pushed last; no_id while none is followed.
    std::uint32_t newest() const { return period_ ? (position_ + period_ - 1) % period_ : no_id; }
    // The id that comes next if the period holds; no_id while none is followed.
    std::uint32_t expected() const { return period_ ? pattern_[position_] : no_id; }
    // Iterations of the followed period that have begun in its run, counted from the run's start; 0 while
    // none is followed.
    std::uint64_t stable_for() const { return iterations_; }
    // Regions that followed the period in its run.
    std::uint64_t matched() const { return matched_; }
    // No longer period can replace this one any more; push() costs a comparison.
    bool settled() const { return settled_; }
    void reset();

  private:
    Step push_slowly(std::uint32_t id);
    Step search(std::uint32_t id);
    Step challenge(std::uint32_t id);
    Step break_off();
    bool advance(std::uint32_t id);
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
    bool foreign_pending_ = false;
    std::uint32_t foreign_id_ = no_id;
    std::uint64_t matched_ = 0;
    std::uint64_t since_foreign_ = 0;
    std::uint64_t followed_ = 0;
    std::uint64_t iterations_ = 0;
    std::uint64_t searched_ = 0;
};

// Irregular repetition (adaptive codes: inner loops of varying length). Finds a short sequence of regions (a
// k-gram, k <= 4) that recurs, where the sets of regions between its occurrences are alike (mean Jaccard
// similarity >= 0.85) and each holds most of the regions in use (so that the outermost cycle is taken). An
// iteration begins at the region that completes the k-gram. The search runs at sparse points only: at 128,
// 256, ... window regions, then once every window.
class AnchorFinder {
  public:
    static constexpr std::uint32_t window = 2048;
    static constexpr int longest_gram = 4;
    static constexpr std::uint32_t no_id = PeriodFinder::no_id;

    AnchorFinder();
    Step push(std::uint32_t id);

    bool found() const { return gram_length_ > 0; }
    // Regions between the last two occurrences, and the mean over the window in which it was found.
    std::uint32_t last_gap() const { return last_gap_; }
    double mean_gap() const { return mean_gap_; }
    std::uint64_t stable_for() const { return iterations_; }
    void reset();

  private:
    static constexpr int most_evaluated = 48;
    using IdSet = std::array<std::uint64_t, 4>; // ids hashed to 256 bits
    struct Gram {
        std::uint32_t count, first, last; // ends of the first and last occurrence in the window
        std::uint64_t gap_squares;
        int length;
    };
    struct Rating {
        double score, mean_gap;
        std::uint32_t longest_gap;
    };
    bool search();
    void count_grams(int length, std::uint32_t size);
    Rating rate(const Gram& gram, std::uint32_t size, int ids) const;
    bool same_gram(std::uint32_t end, std::uint32_t other_end, int length) const;
    bool at_anchor() const;
    std::uint32_t at(std::uint32_t index) const { return ring_[(oldest_ + index) % window]; }

    std::array<std::uint32_t, window> ring_;
    std::uint32_t oldest_ = 0; // index in ring_ of the oldest id
    std::uint32_t size_ = 0;   // ids in ring_
    std::uint64_t pushed_ = 0; // since the last reset or loss
    std::uint64_t next_search_ = first_search;
    static constexpr std::uint32_t first_search = 128;
    std::array<std::uint32_t, longest_gram> gram_;
    int gram_length_ = 0;
    std::uint32_t since_anchor_ = 0;
    std::uint32_t last_gap_ = 0;
    std::uint32_t longest_gap_ = 0;
    double mean_gap_ = 0;
    std::uint64_t iterations_ = 0;
    int unlike_ = 0;
    IdSet set_{}, previous_{};
    // Scratch of search().
    std::array<std::uint32_t, window> ids_; // the window, oldest first
    std::array<std::uint8_t, window> bit_;  // dense small number of each id
    std::array<std::uint16_t, 2 * window> slots_;
    std::array<Gram, window> grams_;
    std::uint32_t gram_count_ = 0;
};

// Both together: exact periods first; an anchor takes over while exact periods do not last, and gives way
// when one does.
class IterationFinder {
  public:
    Step push(std::uint32_t id) {
        if (period_.settled()) {
            const Step step = period_.push(id);
            if (period_.settled()) return step;
            return after_settled(step);
        }
        return search(id);
    }
    // Whether iterations are found by an anchor (their lengths vary) rather than by an exact period.
    bool by_anchor() const { return by_anchor_; }
    bool found() const { return by_anchor_ || period_.period() != 0; }
    std::uint64_t stable_for() const { return by_anchor_ ? anchor_.stable_for() : period_.stable_for(); }
    const PeriodFinder& period() const { return period_; }
    const AnchorFinder& anchor() const { return anchor_; }
    void reset();

  private:
    Step search(std::uint32_t id);
    Step after_settled(const Step& step);

    PeriodFinder period_;
    AnchorFinder anchor_;
    bool by_anchor_ = false;
};

} // namespace homing::phases
