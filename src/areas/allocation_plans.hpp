// Where the pages of blocks to come belong: of temporaries, which a program allocates and frees in every
// iteration, whose owners are known before they are allocated. Their pages get a policy as the block begins,
// so that each comes into being where it is used, whoever clears it; nothing need be moved.
//
// The engine publishes a plan for a place in the code and a size; allocator hooks of any thread look it up,
// without a lock and without waiting: a plan that is being written just then is none. A block that was placed
// is remembered until it ends, and its memory has no policy of ours any more before the allocator gets it
// back.
#pragma once

#include "areas/areas.hpp"
#include "base/pages.hpp"
#include "kernel/kernel.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

namespace homing {

/// What blocks of one place and one size have in common. Never 0.
std::uint64_t place_and_size(std::size_t bytes, const Address* origin) noexcept;
inline std::uint64_t place_and_size(const AreaEntry& entry) noexcept {
    return place_and_size(entry.range.bytes(), entry.origin);
}

class AllocationPlans {
  public:
    /// Of a plan, and of live blocks: each run is a mapping to the kernel, of which a process may have
    /// 65,530.
    static constexpr std::size_t most_runs = 32;
    static constexpr std::size_t most_placed = 128;
    static constexpr std::size_t most_plans = 64; ///< places and sizes

    /// Pages from the end of the run before (0 at first) up to `end`, counted from the block's first whole
    /// page, are to come into being on a node (of the system's numbers; -1: wherever they are touched).
    struct Run {
        std::uint32_t end = 0;
        std::int32_t node = -1;
    };

    constexpr AllocationPlans() noexcept = default;
    AllocationPlans(const AllocationPlans&) = delete;
    AllocationPlans& operator=(const AllocationPlans&) = delete;

    /// [one thread] What becomes of the blocks to come of this key, by calls of this kernel, which outlives
    /// them; no runs, or too many: nothing any more. Where there is no room the oldest plan goes.
    void publish(std::uint64_t key, std::span<const Run> runs, Kernel& kernel) noexcept;
    /// [one thread] No block is placed any more.
    void withdraw() noexcept;
    /// [any thread, hooks] A block begins to live, which nothing has touched yet. At most most_runs system
    /// calls.
    void begins(Range block, std::uint64_t key) noexcept;
    /// [any thread, hooks] A block is about to end. One system call where it was placed, else a load.
    void ends(Range block) noexcept;

    /// Are there any plans? Hooks need not build a key otherwise.
    bool any() const noexcept { return plans_.load(std::memory_order_relaxed) > 0; }
    /// Blocks that were placed so far, as a whole.
    std::uint64_t placed() const noexcept { return placed_.load(std::memory_order_relaxed); }

  private:
    /// A seqlock: odd while it is written.
    struct Plan {
        std::atomic<std::uint64_t> version{0};
        std::atomic<std::uint64_t> key{0}; ///< 0: none
        std::atomic<std::uint32_t> count{0};
        std::atomic<std::uint64_t> runs[most_runs]{}; ///< end and node
        std::uint64_t published = 0;                  ///< the publisher's clock
    };
    bool remember(Address block) noexcept;
    bool read(std::uint64_t key, std::array<Run, most_runs>& runs, std::size_t& count) const noexcept;

    std::array<Plan, most_plans> table_{};
    std::array<std::atomic<Address>, most_placed> blocks_{}; ///< live ones that were placed; 0: free
    std::atomic<Kernel*> kernel_{nullptr};
    std::atomic<std::uint32_t> plans_{0};
    std::atomic<std::uint32_t> live_{0};
    std::atomic<std::uint64_t> placed_{0};
    std::uint64_t clock_ = 0;
};

AllocationPlans& allocation_plans() noexcept;

} // namespace homing
