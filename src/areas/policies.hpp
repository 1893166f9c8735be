// The memory policies that homing puts on the program's memory for a while, and the way back. Two layers lie
// over the policy that was found: `owned` keeps kernel NUMA balancing from moving pages that homing places,
// `observed` keeps the kernel's hint faults coming. The topmost layer that is set is in force; when none is
// left, exactly the policy that was found is in force again.
//
// What makes that exact:
//  - get_mempolicy(MPOL_F_ADDR) tells MPOL_DEFAULT for a mapping without a policy of its own, even where the
//  task has
//    one (numactl), so that giving back what was read leaves numactl's policy in force as before;
//  - a policy is given back only where the one homing set is still in force: memory that the program
//  unmapped, mapped
//    anew or bound itself meanwhile is left alone;
//  - a request is done whole or not at all, and what could not be undone is counted, never forgotten;
//  - homing's policies carry MPOL_F_STATIC_NODES, so that a block that mremap carried elsewhere with our
//  policy on it
//    is not taken for one that the user bound so.
// Shared mappings are left alone: their policy belongs to every process that maps them. A home node set by
// set_mempolicy_home_node(2) cannot be read back and is lost.
//
// A child inherits the policies of its parent's memory for life, exec(2) forgets them: so a fork is told to
// the keeper (hooks/preload.cpp), which gives all back in the child. A vfork(2), and what is built on it,
// shares the parent's memory until the exec and wants nothing.
#pragma once

#include "base/fork_mutex.hpp"
#include "base/pages.hpp"
#include "base/raw_calls.hpp"
#include "kernel/kernel.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace homing {

/// A mapping of this process that overlaps a range of interest.
struct MappedRange {
    Range range;
    bool shared = false;
};

/// The mappings of a file in the format of /proc/self/maps that overlap one of `ranges` (ascending), in
/// order. False where the file cannot be read or is none such.
bool read_mappings(const char* path, std::span<const Range> ranges, std::vector<MappedRange>& mappings);

/// Kernel NUMA balancing leaves memory of this policy alone; pages to come land as without a policy.
MemoryPolicy owned_policy(NodeSet allowed) noexcept;
/// Hint faults keep coming on memory of this policy, and the kernel migrates only what threads on `node`
/// touch and what does not lie there. Pages to come land on `node`, elsewhere where it is full: for populated
/// memory only. EINVAL before Linux 6.9.
MemoryPolicy observed_policy(int node) noexcept;
/// The same for Linux from 5.12, with a danger: pages to come land on `node` or nowhere, and where it is full
/// the kernel kills the program, whatever is free elsewhere.
MemoryPolicy strictly_observed_policy(int node) noexcept;

/// Used by the driver of the engine, one thread at a time; what has to do with forks by any thread.
class PolicyKeeper {
  public:
    enum class Layer { owned, observed };

    struct Request {
        Range range; ///< whole pages inside it are meant
        MemoryPolicy policy;
        int error = 0; ///< set by set(): 0, or the errno because of which nothing of it was done
    };

    struct Outcome {
        std::size_t bytes = 0; ///< brought to the state that was asked for
        std::size_t left_alone =
            0; ///< bytes not touched: not mapped, shared, or changed by the program meanwhile
        std::size_t failed = 0; ///< requests (set, own) or pieces (clear) that failed
        int error = 0;          ///< the first errno of those
    };

    explicit PolicyKeeper(Kernel& kernel, std::string maps = "/proc/self/maps");

    /// Put a layer over these ranges (ascending, disjoint). Setting it again replaces it.
    Outcome set(Layer layer, std::span<Request> requests);

    /// Set the owned layer where kernel balancing acts: where neither the mapping nor the task has a policy,
    /// or has one with MPOL_F_NUMA_BALANCING. Elsewhere the user's policy already keeps the balancer away,
    /// and stays in force for pages to come. `allowed` are the nodes the process may allocate on.
    Outcome own(std::span<const Range> ranges, NodeSet allowed);

    /// Take a layer off again. Safe also after the memory is gone.
    Outcome clear(Layer layer, std::span<const Range> ranges);
    /// Take both layers off everything; pieces that failed before are tried again.
    Outcome clear_all();

    /// Bytes under a layer now.
    std::size_t bytes(Layer layer) const noexcept;
    /// Is all of a range under a layer?
    bool holds(Layer layer, Range range) const noexcept;
    /// The policy that was found at an address under a layer; nothing where homing set none.
    std::optional<MemoryPolicy> found(Address address) const noexcept;
    /// Has the program itself bound the memory there (mbind, or libnuma on top of it)? Then it is where it
    /// wants it.
    bool bound_by_program(Address address) const noexcept;
    /// Bytes on which a policy of homing's had to stay because the kernel refused to take the old one back.
    std::size_t stuck_bytes() const noexcept;
    /// Pieces of state kept; neighbours in the same state are one.
    std::size_t pieces() const noexcept;

    // Around a fork(2), in this order, by the thread that forks; handlers of pthread_atfork(3) may call them.

    /// The observed layer comes off everything: pages that parent and child share are copied when either
    /// writes to them, and the copies would land on the observed nodes. Waits until the driver's call, if one
    /// is at work, is done.
    void before_fork() noexcept;
    void after_fork() noexcept;
    /// Give everything back in the child: by system calls only, as is all that the child of a process with
    /// threads may do. The keeper is of no use there afterwards.
    void after_fork_in_child() noexcept;
    /// How often before_fork() was here: what was observed before is so no more, and pages may be shared with
    /// a child since.
    std::uint64_t forks() const noexcept { return forks_.load(std::memory_order_acquire); }

    // Around an mremap(2) of a range, in this order, by the thread that makes it; handlers of signals may be
    // among them.

    /// What is homing's comes off: memory of several policies cannot be moved or grown as one (EFAULT), and
    /// pages to come would lie where ours says. Nobody sets any until after_remap(). False: nothing was done,
    /// and after_remap() is not to be called.
    bool before_remap(Range range) noexcept;
    void after_remap() noexcept { mutex_.unlock(); }
    /// How often before_remap() took something off.
    std::uint64_t remaps() const noexcept { return remaps_.load(std::memory_order_acquire); }

  private:
    static constexpr std::size_t layers = 2;
    static constexpr auto observed = static_cast<std::size_t>(Layer::observed);

    struct Piece {
        Address end = 0;
        MemoryPolicy found;
        MemoryPolicy in_force; ///< as the kernel tells it after it was set
        std::array<std::optional<MemoryPolicy>, layers> wanted;

        bool any() const noexcept { return wanted[0] || wanted[1]; }
        /// Nothing of ours is in force: kept until the driver comes by (before_fork() frees no memory).
        bool idle() const noexcept { return !any() && in_force == found; }
        /// What should be in force.
        const MemoryPolicy& top() const noexcept {
            return wanted[1] ? *wanted[1] : wanted[0] ? *wanted[0] : found;
        }
        bool same_state(const Piece& other) const noexcept {
            return found == other.found && in_force == other.in_force && wanted == other.wanted;
        }
    };
    using Pieces = std::map<Address, Piece>; ///< by begin; disjoint

    /// What homing has put in force somewhere, and what it last covered there.
    struct Ours {
        MemoryPolicy in_force;
        MemoryPolicy found;
    };

    Pieces::iterator split_at(Address address);
    void split_at_borders(Range range, std::span<const MappedRange> mappings);
    void merge_around(Range range);
    Pieces::const_iterator piece_at(Address address) const noexcept;
    int cover(Range range, std::span<const MappedRange> mappings, Outcome& outcome);
    int put(Address begin, Piece& piece);
    int set_one(std::size_t layer, Range range, const MemoryPolicy& policy,
                std::span<const MappedRange> mappings, Outcome& outcome);
    void clear_one(unsigned which, Range range, const std::vector<MappedRange>* mappings, Outcome& outcome);
    Outcome clear_layers(unsigned which, std::span<const Range> ranges);
    template <class Visit> void each_part(Visit&& visit) noexcept;
    MemoryPolicy read_as_found(const MemoryPolicy& read) const noexcept;
    void remember(const Piece& piece);

    Kernel& kernel_;
    std::string maps_;
    Pieces pieces_;
    std::vector<Ours> ours_;  ///< distinct by in_force
    mutable ForkMutex mutex_; ///< guards all that is above
    std::atomic<std::uint64_t> forks_{0}, remaps_{0};
    const int process_ = raw::process_id();
};

} // namespace homing
