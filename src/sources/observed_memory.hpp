// Which of the watched memory carries the policy that keeps the kernel's hint faults coming while it migrates
// (almost) nothing: MPOL_F_NUMA_BALANCING with one node, because a page may only go to a node of its policy.
// Each watched range is cut into pieces, and each piece is bound to the node where most of it lies.
//
// Pages to come land where such a policy says, not where they would without us, and under the form that
// kernels before 6.9 know a full node gets the program killed. So only memory is bound on which no access
// allocates (areas/populated.hpp): every page of it is looked at before, and again in turn as long as it is
// bound, because memory can be given back, swapped out, or shared with the child of a fork. What is found to
// have gone is let go at once, and so is all that is bound to a node that runs short of memory.
#pragma once

#include "areas/policies.hpp"
#include "areas/populated.hpp"
#include "sources/references.hpp"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace homing {

/// Used by the driver of the engine only: one thread at a time.
class ObservedMemory {
  public:
    /// `proc`: the root of procfs. Without a keeper of policies it uses one of its own.
    ObservedMemory(Kernel& kernel, const Machine& machine, const char* proc, PolicyKeeper* keeper);

    /// Can memory be observed here? Tried on a page of our own; empty: yes, else the reason in a few words.
    std::string unavailable();

    /// Observe these ranges (ascending, disjoint) instead of those before. What was bound and still is
    /// watched does not blink: the balancer would start anew. False: none of it can be bound, reason() says
    /// why.
    bool assign(std::span<const WatchedRange> ranges);
    /// Look at free memory and at some of the pages, in turn. To be called often: it takes a small share of
    /// the time between calls, and reads the state of 512 pages at least.
    void look();
    /// Take the policy off everything; nothing is looked at until the next assign().
    void release();
    /// In the child of a fork: forget.
    void abandon() noexcept { pieces_.clear(); }

    /// Why something is not observed; the newest reason.
    const std::string& reason() const noexcept { return reason_; }
    void forget_reason() noexcept { reason_.clear(); }

  private:
    static constexpr std::size_t probes = 16; ///< pages of a piece that are asked for their node

    /// Part of a watched range that gets one policy.
    struct Piece {
        Range range;
        std::size_t granule = 0;
        Range bound;          ///< the part of it that has our policy; may be empty
        int node = -1;        ///< to which
        bool refused = false; ///< by the kernel: not tried again
    };
    /// A part of a piece that is to be bound.
    struct Wish {
        std::size_t piece;
        Range range;
        int node;
    };

    MemoryPolicy policy_of(int node) const noexcept;
    void cut(const WatchedRange& watched);
    void keep_bound(std::span<const Piece> before);
    void notice_fork();
    void look_at_free_memory();
    void let_go(Piece& piece);
    void begin_piece();
    void look_at_chunk();
    void end_piece();
    void next_piece() noexcept;
    int node_for(const Piece& piece, Range part) const noexcept;
    void bind_wishes();
    void clear_gone();

    Kernel& kernel_;
    std::vector<Node> nodes_;
    int first_target_;
    std::unique_ptr<PolicyKeeper> own_keeper_;
    PolicyKeeper& keeper_;
    PopulatedPages populated_;
    bool strictly_ = false; ///< the kernel knows only the older form of the policy
    std::vector<Piece> pieces_;
    std::size_t chunks_ = 0; ///< of all of them
    std::vector<Wish> wishes_;
    std::vector<Range> gone_; ///< to be given back
    std::string reason_;

    // The piece that is being looked at.
    std::size_t piece_ = 0;
    Address at_ = 0; ///< so far; 0: it has not begun
    Range run_;      ///< populated pages up to there
    Range longest_;  ///< the longest run before
    std::array<void*, probes> probed_{};
    std::array<int, probes> homes_{};
    std::size_t probe_count_ = 0;

    std::uint64_t forks_ = 0;
    NodeSet short_of_memory_;
    double next_look_at_memory_ = 0; ///< in seconds of the clock
    double looked_ = 0;
    double allowance_ = 0; ///< seconds
};

} // namespace homing
