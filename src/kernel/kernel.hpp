// The seam: the only interface through which homing asks the operating system about memory. linux.cpp makes
// the system calls, simulated.cpp answers from a table, tests/unit/failing.hpp makes any call fail with any
// errno.
//
// The contract, stated once:
//  - addresses and lengths are page-aligned; the caller guarantees it, an implementation may assert it;
//  - a result of type int is 0 for success or a positive errno; errno itself is left as it was found;
//  - EINTR and EAGAIN are retried inside (at most 3 times), nothing else is;
//  - no call throws, allocates through malloc, or takes a lock that user code could hold;
//  - calls marked [signal] may be made from a signal handler.
#pragma once

#include "base/pages.hpp"
#include "base/raw_calls.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <linux/mempolicy.h>
#include <span>
#include <sys/syscall.h>
#include <vector>

namespace homing {

inline constexpr int max_nodes = 64;

/// A set of NUMA nodes by their operating system index (indices may be sparse; 64 and above are ignored, said
/// aloud by machine/).
struct NodeSet {
    std::uint64_t bits = 0;

    constexpr bool has(int node) const noexcept {
        return node >= 0 && node < max_nodes && (bits >> node & 1);
    }
    constexpr void add(int node) noexcept {
        bits |= node >= 0 && node < max_nodes ? std::uint64_t{1} << node : 0;
    }
    constexpr int count() const noexcept { return __builtin_popcountll(bits); }
    constexpr int first() const noexcept { return bits ? __builtin_ctzll(bits) : -1; }
    friend constexpr bool operator==(NodeSet, NodeSet) = default;
};

/// A memory policy as mbind and get_mempolicy know it: MPOL_* mode with its flags, and nodes.
struct MemoryPolicy {
    int mode = 0; ///< MPOL_DEFAULT and so on, MPOL_F_* mode flags included
    NodeSet nodes;
    /// MPOL_DEFAULT and so on alone.
    constexpr int plain_mode() const noexcept {
        return mode & ~(MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING);
    }
    friend constexpr bool operator==(MemoryPolicy, MemoryPolicy) = default;
};

enum class Access { none, read_write };

/// What a sampler counts. Raw encodings come from sources/pmu.cpp, which reads them from sysfs.
/// sample_type is IP | TID | TIME | ADDR | CPU, with `weight` also WEIGHT | DATA_SRC; with `aux_pages`
/// sample_id_all is set, so that each PERF_RECORD_AUX names the CPU that filled its part of the buffer.
/// exclude_hv goes with exclude_kernel.
struct SamplerEvent {
    std::uint32_t type = 0;   ///< perf_event_attr.type
    std::uint64_t config = 0; ///< perf_event_attr.config
    std::uint64_t config1 = 0;
    std::uint64_t config2 = 0;
    std::uint64_t period = 1; ///< one sample every so many events
    int precise = 0;          ///< perf_event_attr.precise_ip
    bool weight = false;      ///< also ask for latency and data source
    bool monotonic = false; ///< times by CLOCK_MONOTONIC (the PMU's buffers are flushed at each sample then)
    bool exclude_kernel = true; ///< AMD IBS without its software filter refuses to exclude anything
    bool with_leader =
        false; ///< open in a group led by a counting event (Sapphire Rapids: mem-loads-aux), ...
    std::uint64_t leader_config = 0; ///< ... of the same type with this config
    std::size_t aux_pages = 0;       ///< pages (a power of two) of an AUX buffer (Arm SPE); 0: none
    bool stack_top = false;          ///< also ask for the word at the stack pointer (STACK_USER)
};

/// A mapped perf ring. The descriptor is closed right after mapping (the mapping keeps the event alive), so
/// that a program which closes or reuses descriptors that are not its own cannot hurt. The same holds for a
/// group leader: one page of it stays mapped, because a leader that goes away would leave its group as single
/// events.
struct SamplerRing {
    void* map = nullptr;
    std::size_t bytes = 0; ///< of `map`: the control page and the data pages
    int thread = 0;
    void* aux = nullptr;
    std::size_t aux_bytes = 0;
    void* leader = nullptr; ///< one page
};

class Kernel {
  public:
    virtual ~Kernel() = default;

    /// The node of each page into `nodes` (same length as `pages`): a node, or -errno. Kernels differ in the
    /// errno:
    ///   not populated          -EFAULT up to 6.5 (anonymous memory), -ENOENT later
    ///   armed for a hint fault, or without access (a window)
    ///                          -ENOENT up to 6.5, later the node
    ///   zero page, unmapped    -EFAULT
    /// So -ENOENT may be a page that is there, and is worth asking for again; -EFAULT has nothing to move.
    virtual int query(std::span<void* const> pages, std::span<int> nodes) noexcept = 0;

    /// Does each range hold a page that query() would find (present, and not the zero page)? `found` (as
    /// many) becomes 1 or 0. What is not populated is passed over at the pace of page tables, so that a
    /// terabyte takes some microseconds. ENOSYS: it can be told by asking for each page only.
    virtual int populated(std::span<const Range> /*ranges*/, std::span<std::uint8_t> /*found*/) noexcept {
        return ENOSYS;
    }

    /// Page faults of this process so far that needed no I/O: where some came, pages may have come into
    /// being. 0: not known. Takes some 0.3 µs, and a little for each thread.
    virtual std::uint64_t page_faults() noexcept { return 0; }

    /// [signal] Do query() and move() fail to know pages that are armed for a hint fault? (Linux up to 6.5.)
    virtual bool hides_pages() noexcept { return false; }
    /// [signal] Make such pages known: they are touched on the caller's behalf. Where they have no policy of
    /// their own they stay where they are; a policy with balancing may answer by moving them here. What does
    /// not exist stays so.
    virtual int reveal(std::span<void* const> /*pages*/) noexcept { return 0; }

    /// Move each page to its target node; `status` becomes the node where it is now, or -errno. One system
    /// call. The kernel works through runs of pages with one target, which also end at a page that need not
    /// or may not move, and gives up at the first run that it cannot move whole (a busy page: the result is
    /// still 0; no memory: ENOMEM). Then each page of that run has its node or the reason (-EBUSY, -ENOMEM),
    /// and each page after it -EAGAIN: not attempted, ask again.
    virtual int move(std::span<void* const> pages, std::span<const int> targets,
                     std::span<int> status) noexcept = 0;

    /// Set the policy of a range for pages to come (pages that are there stay).
    virtual int bind(Range range, MemoryPolicy policy) noexcept = 0;

    /// The policy set for the address (MPOL_DEFAULT: none, the thread's own policy is in force), and the
    /// calling thread's own. EOVERFLOW where it has nodes of 64 and above, which MemoryPolicy cannot express.
    virtual int policy_at(Address address, MemoryPolicy& policy) noexcept = 0;
    virtual int task_policy(MemoryPolicy& policy) noexcept = 0;

    /// Nodes that this process may allocate on (cpuset). EOVERFLOW: there are some of 64 and above, too; the
    /// others are told.
    virtual int allowed_nodes(NodeSet& nodes) noexcept = 0;

    /// [signal] Take or give back the right to access a range.
    virtual int protect(Range range, Access access) noexcept = 0;

    /// The mappings that the process has, and may have (vm.max_map_count). Counting takes some 0.5 µs each.
    /// Where they cannot be counted: none, and any number.
    struct Mappings {
        std::size_t now = 0;
        std::size_t most = ~std::size_t{0};
    };
    virtual Mappings mappings() noexcept { return {}; }

    /// [signal] The node of the CPU that runs the caller.
    virtual int current_node() noexcept = 0;

    /// [signal] The number of the calling thread.
    virtual int current_thread() noexcept { return static_cast<int>(raw::call(SYS_gettid)); }
    /// A thread of the process, and the node of the CPU that it ran on last (-1: not known).
    struct Thread {
        int number = 0;
        int node = -1;
    };
    /// The threads that the process has, ascending by number. None where they cannot be listed. Allocates.
    virtual std::vector<Thread> threads() { return {}; }

    /// Memory of a node in bytes that a move can have: free, or file cache that the kernel gives up for it
    /// (MemFree + Inactive(file)). 0 where it is not known.
    virtual std::uint64_t free_bytes(int node) noexcept = 0;

    /// Open a sampler of one thread (0: the caller) with a ring of `pages` (a power of two) data pages.
    virtual int open_sampler(const SamplerEvent& event, int thread, std::size_t pages,
                             SamplerRing& ring) noexcept = 0;
    virtual void close_sampler(SamplerRing& ring) noexcept = 0;

    /// The node of a CPU (as samples name it), -1 where not known. The first call reads sysfs.
    virtual int node_of_cpu(int cpu) noexcept = 0;
};

/// query(), with more looks at pages that it did not know because they were armed. `prepare` is called
/// before any of them is touched.
int query_revealed(Kernel& kernel, std::span<void* const> pages, std::span<int> nodes,
                   const std::function<void()>& prepare = {});

/// The real one. Lives for the whole process.
Kernel& linux_kernel() noexcept;

/// Placement pretended, everything else real: for HOMING_ASSUME_NODES, where one node plays several so that
/// observation and decisions can be measured on a laptop. All pages begin on node 0; memory policies are
/// accepted and forgotten; a page that was moved stays moved, even where its memory is given back and used
/// again. Each page moves alone, on huge pages too. CPU c of n online ones belongs to node c * nodes / n.
Kernel& assumed_kernel(int nodes) noexcept;

} // namespace homing
