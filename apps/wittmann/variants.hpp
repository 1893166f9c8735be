// The ways to run one sweep over all blocks: those of Figure 3 of Wittmann and Hager 2010, and some of today.
#pragma once

#include "grid.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace wittmann {

struct Choice {
    std::string variant;
    std::string initialise = "s"; ///< serial, round-robin, s (static), s1 (static,1)
    bool kji = false;             ///< submission order
    bool pin = false;             ///< TBB's threads
    bool partitioner = false;     ///< TBB's affinity partitioner
    bool line = false;            ///< TBB: blocks as a line, not as a space of three dimensions
    bool look_up = true;          ///< homes from addresses; false: noted when a block is first touched
    long work = 1;                ///< updates of a block in one sweep
    int threads = 1;
};

/// How many blocks ran in their own domain, and on request which ran where, in the order of their ends.
/// Counted by the thread that ran them.
class HomeCount {
  public:
    /// A block's run: the domains of the thread and of the block.
    struct Run {
        int here = -1, home = -1;
    };
    void ran(const Block& block) noexcept;
    /// Keep the next `blocks` runs.
    void keep_runs(std::size_t blocks) { runs_.resize(blocks); }
    const std::vector<Run>& runs() const noexcept { return runs_; }
    long at_home() const noexcept { return at_home_.load(std::memory_order_relaxed); }
    long known() const noexcept { return known_.load(std::memory_order_relaxed); }
    void reset() noexcept {
        at_home_ = 0;
        known_ = 0;
        next_run_ = 0;
    }

  private:
    alignas(64) std::atomic<long> at_home_{0};
    alignas(64) std::atomic<long> known_{0};
    std::vector<Run> runs_;
    std::atomic<std::size_t> next_run_{0};
};

/// A program of blocks: touch them first, then sweep.
class Variant {
  public:
    virtual ~Variant() = default;
    virtual void initialise() = 0;
    /// One sweep over all blocks (without exchange()).
    virtual void sweep() = 0;
    /// Something to tell the user about how it ran; empty: nothing.
    virtual std::string remark() const { return {}; }
};

/// Names of all variants, separated by '|'.
extern const char* const variant_names;

/// Null for a variant that this build does not have (`clause` of gcc works, but the compiler drops the
/// clause).
std::unique_ptr<Variant> make_omp_variant(const Choice& choice, Grid& grid, HomeCount& count);
std::unique_ptr<Variant> make_tbb_variant(const Choice& choice, Grid& grid, HomeCount& count);

/// Where the blocks' pages are: the domain of most of a block's lines.
void find_homes(Grid& grid);

} // namespace wittmann
