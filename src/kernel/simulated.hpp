// A kernel in a table, for tests of everything above the seam: addresses need no memory behind them. It
// answers as Linux does, with its manners (first touch, policies by range, huge pages that move whole, runs
// of pages that fail together, mappings that split), and says afterwards what it was asked. Not for several
// threads.
#pragma once

#include "kernel/kernel.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace homing {

enum class KernelCall {
    query,
    populated,
    reveal,
    move,
    bind,
    policy_at,
    task_policy,
    allowed_nodes,
    protect,
    current_node,
    free_bytes,
    open_sampler,
    close_sampler,
    node_of_cpu,
    count
};

class SimulatedKernel final : public Kernel {
  public:
    static constexpr int forever = -1;
    static constexpr int absent = -1; ///< where(): no page there

    /// Nodes 0, 1, ... with so many base pages each; a node with 0 pages has no memory.
    explicit SimulatedKernel(std::vector<std::size_t> node_pages);

    // What the machine and the program do.

    /// A new mapping, nothing populated; with `huge` each touch populates an aligned 2 MiB at once.
    void map(Range range, bool huge = false);
    void unmap(Range range);
    /// Pages go away, the mapping stays (MADV_DONTNEED).
    void drop(Range range);

    enum class Touch { done, fault, unmapped, no_memory };
    /// A thread on `node` accesses an address: first touch populates by the policy in force. `fault`:
    /// protected.
    Touch touch(Address address, int node);
    /// Touch every page of a range from one node.
    void touch_all(Range range, int node);
    /// Populate on this node whatever the policies say.
    void place(Range range, int node);

    /// Pages that cannot be moved so many times: -EBUSY.
    void make_busy(Range range, int times = forever);
    void make_shared(Range range); ///< with another process: -EACCES
    void make_zero(Range range);   ///< the zero page: -EFAULT until touched (which places it)
    /// Marked for a NUMA hint fault, as kernels up to 6.5 answer then: -ENOENT until touched.
    void make_armed(Range range);
    /// A scan that comes right after each of the next so many calls of this kind (reveal; protect where it
    /// gives access) and arms what is there from this address on.
    void scan_after(KernelCall call, int times, Address from = 0) { scans_ = {call, times, from}; }

    void set_allowed(NodeSet nodes) { allowed_ = nodes; }
    void set_cpu_nodes(std::vector<int> nodes) { cpu_nodes_ = std::move(nodes); }
    void set_current_node(int node) { current_node_ = node; }
    void set_task_policy(MemoryPolicy policy) { task_policy_ = policy; }
    /// How a page that is not populated is answered: ENOENT, or EFAULT as kernels up to 6.5 have it.
    void set_absent_error(int error) { absent_error_ = error; }
    /// populated() answers, as Linux 6.7 and later do.
    void tell_populated() { tells_populated_ = true; }
    /// page_faults() is not known.
    void hide_page_faults() { hides_page_faults_ = true; }
    /// vm.max_map_count.
    void set_most_mappings(std::size_t count) { most_mappings_ = count; }

    // What became of it.

    int where(Address address) const;
    std::size_t pages_on(Range range, int node) const;
    std::size_t free_pages(int node) const;
    bool is_protected(Address address) const;
    std::size_t protected_pages() const;
    MemoryPolicy policy_of(Address address) const;
    Mappings mappings() noexcept override { return {areas_.size(), most_mappings_}; }

    struct Logged {
        KernelCall call;
        Range range; ///< bind, protect: the range; query, move: first page to behind the last one's start
        std::size_t pages = 0;              ///< query, move: in the call
        MemoryPolicy policy{};              ///< bind
        Access access = Access::read_write; ///< protect
        int error = 0;                      ///< what was answered
    };
    const std::vector<Logged>& log() const { return log_; }
    void clear_log() { log_.clear(); }
    std::size_t calls(KernelCall call) const { return counts_[static_cast<std::size_t>(call)]; }
    std::size_t pages_moved() const { return pages_moved_; }
    std::size_t largest_move() const { return largest_move_; } ///< pages in one call

    // The contract of Kernel.

    int query(std::span<void* const> pages, std::span<int> nodes) noexcept override;
    int populated(std::span<const Range> ranges, std::span<std::uint8_t> found) noexcept override;
    std::uint64_t page_faults() noexcept override { return hides_page_faults_ ? 0 : populated_; }
    bool hides_pages() noexcept override { return true; }
    int reveal(std::span<void* const> pages) noexcept override;
    int move(std::span<void* const> pages, std::span<const int> targets,
             std::span<int> status) noexcept override;
    int bind(Range range, MemoryPolicy policy) noexcept override;
    int policy_at(Address address, MemoryPolicy& policy) noexcept override;
    int task_policy(MemoryPolicy& policy) noexcept override;
    int allowed_nodes(NodeSet& nodes) noexcept override;
    int protect(Range range, Access access) noexcept override;
    int current_node() noexcept override;
    /// One thread runs on each node.
    int current_thread() noexcept override { return current_node_ + 1; }
    std::vector<Thread> threads() override;
    std::uint64_t free_bytes(int node) noexcept override;
    int open_sampler(const SamplerEvent& event, int thread, std::size_t pages,
                     SamplerRing& ring) noexcept override;
    void close_sampler(SamplerRing& ring) noexcept override;
    int node_of_cpu(int cpu) noexcept override;

  private:
    struct Page {
        std::int8_t node = absent;
        bool shared = false;
        bool zero = false;
        bool armed = false;
        int busy = 0;
    };
    using Chunk = std::array<Page, 512>; // of 4 KiB pages 2 MiB; page_bytes() may be larger: fewer are used

    /// What Linux calls a VMA.
    struct Area {
        Address end;
        MemoryPolicy policy;
        Access access;
        bool huge;
        bool same(const Area& other) const {
            return policy == other.policy && access == other.access && huge == other.huge;
        }
    };
    using Areas = std::map<Address, Area>;

    Page& page(Address address);
    const Page* find_page(Address address) const;
    Areas::const_iterator area_of(Address address) const;
    bool is_mapped(Range range) const;
    void split(Address address);
    void merge(Range range);
    int change(Range range, const MemoryPolicy* policy, const Access* access);
    int choose_node(Address address, int node);
    int state_of(Address address) const;
    bool populate(Address address, int node, bool huge);
    void release(Page& page);
    int logged(Logged entry);
    void scan(KernelCall after);

    std::vector<std::size_t> capacity_;
    std::vector<std::size_t> used_;
    std::map<Address, std::unique_ptr<Chunk>> chunks_;
    Areas areas_;
    NodeSet allowed_;
    NodeSet with_memory_;
    std::vector<int> cpu_nodes_;
    MemoryPolicy task_policy_{};
    int current_node_ = 0;
    int absent_error_;
    bool tells_populated_ = false;
    bool hides_page_faults_ = false;
    std::size_t most_mappings_ = 65530;
    struct {
        KernelCall call = KernelCall::count;
        int times = 0;
        Address from = 0;
    } scans_;
    std::vector<Logged> log_;
    std::array<std::size_t, static_cast<std::size_t>(KernelCall::count)> counts_{};
    std::uint64_t populated_ = 0; ///< pages, or huge pages, that touches brought
    std::size_t pages_moved_ = 0;
    std::size_t largest_move_ = 0;
};

} // namespace homing
