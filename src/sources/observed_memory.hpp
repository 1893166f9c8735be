// Which of the watched memory carries the policy that keeps the kernel's hint faults coming while it migrates
// (almost) nothing: MPOL_F_NUMA_BALANCING with one node, because a page may only go to a node of its policy.
// Each page is bound to the node where it lies, so that it stays there: under a policy with another node, it
// goes there as soon as two hint faults in a row come from that node (NPB-CPP SP class W, pages of 2 MiB
// bound together: the kernel moved 912 of some 1,300 pages, and 20 % of the misses were remote where windows
// come to 12 %). Each watched range is cut into pieces, and each piece into the runs of pages on one node;
// where there are too many runs for the table of mappings, neighbours go together, and of very many ranges
// the largest are observed.
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
    /// the time between calls.
    void look();
    /// Take the policy off everything; nothing is looked at until the next assign().
    void release();

    /// Why something is not observed; the newest reason.
    const std::string& reason() const noexcept { return reason_; }
    void forget_reason() noexcept { reason_.clear(); }

  private:
    /// Blocks of a piece at most, of each of which one page is asked for its node: the pages of 2 MiB.
    static constexpr std::size_t most_blocks = 512;

    /// Memory that has our policy for a node.
    struct Bound {
        Range range;
        int node;
    };
    /// Part of a watched range that is looked at in one go.
    struct Piece {
        Range range;
        std::size_t granule = 0;
        std::vector<Bound> bound; ///< ascending, disjoint; may be empty
        bool refused = false;     ///< by the kernel: not tried again
    };
    /// A part of a piece that is to be bound.
    struct Wish {
        std::size_t piece;
        Bound bound;
    };

    MemoryPolicy policy_of(int node) const noexcept;
    void cut(const WatchedRange& watched, std::size_t most);
    void keep_bound(std::span<const Piece> before);
    void notice_lifted();
    void look_at_free_memory();
    template <class Is> void let_go(Piece& piece, Is&& is);
    void let_go(Piece& piece);
    void begin_piece();
    bool look_at_chunk();
    void end_piece();
    void next_piece() noexcept;
    std::vector<Bound> wanted_in(const Piece& piece, Range part) const;
    void rebind(Piece& piece, std::vector<Bound> wanted);
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
    std::vector<Wish> wishes_;
    std::vector<Range> gone_; ///< to be given back
    std::string reason_;

    // The piece that is being looked at.
    std::size_t piece_ = 0;
    Address at_ = 0;         ///< so far; 0: it has not begun
    Range run_;              ///< populated pages up to there
    Range longest_;          ///< the longest run before
    std::size_t block_ = 0;  ///< bytes of each of its blocks but the last
    std::size_t blocks_ = 0; ///< their number
    std::array<void*, most_blocks> probed_{};
    std::array<int, most_blocks> homes_{};

    std::uint64_t forks_ = 0, remaps_ = 0;
    NodeSet short_of_memory_;
    double next_look_at_memory_ = 0; ///< in seconds of the clock
    double looked_ = 0;
    double allowance_ = 0; ///< in seconds; negative: more was used than there was
};

} // namespace homing
