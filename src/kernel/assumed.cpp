// One machine that plays several nodes: what the kernel is asked about placement is answered from a table,
// everything else is the real kernel. For measuring observation and decisions where there is one node only.
#include "kernel/kernel.hpp"

#include "base/index_list.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <limits>
#include <linux/mempolicy.h>
#include <new>
#include <sched.h>

namespace homing {
namespace {

/// Which node each page is on: 0 unless it was moved. An open hash of 2 MiB chunks, each with a byte for
/// every page; as large as its limit from the start, but resident only where it is used. Any thread, also in
/// a signal handler, may read and write; a chunk is never taken back.
class Placement {
  public:
    bool reserve() noexcept {
        keys_ = static_cast<std::atomic<Address>*>(raw::map_memory(slots * sizeof(std::atomic<Address>)));
        nodes_ = static_cast<std::atomic<std::uint8_t>*>(raw::map_memory(slots * pages_per_chunk()));
        return keys_ && nodes_;
    }

    int node(Address page) const noexcept {
        const std::size_t slot = find(page / huge_page_bytes, false);
        return slot == slots ? 0 : at(slot, page).load(std::memory_order_relaxed);
    }

    /// False where the table is full.
    bool move(Address page, int node) noexcept {
        const std::size_t slot = find(page / huge_page_bytes, node != 0);
        if (slot == slots) return node == 0;
        at(slot, page).store(static_cast<std::uint8_t>(node), std::memory_order_relaxed);
        return true;
    }

  private:
    static constexpr std::size_t slots = std::size_t{1} << 18; // 512 GiB of memory that has moved
    static constexpr std::size_t probe_limit = 1024;

    static std::size_t pages_per_chunk() noexcept { return huge_page_bytes / page_bytes(); }
    std::atomic<std::uint8_t>& at(std::size_t slot, Address page) const noexcept {
        return nodes_[slot * pages_per_chunk() + page % huge_page_bytes / page_bytes()];
    }

    std::size_t find(Address chunk, bool add) const noexcept {
        const Address key = chunk + 1; // 0 is an empty slot
        const std::size_t place = static_cast<std::size_t>(std::uint64_t{key} * 0x9e3779b97f4a7c15u >> 46);
        for (std::size_t step = 0; step < probe_limit; ++step) {
            const std::size_t slot = (place + step) % slots;
            Address found = keys_[slot].load(std::memory_order_acquire);
            if (found == 0) {
                if (!add) return slots;
                if (keys_[slot].compare_exchange_strong(found, key, std::memory_order_acq_rel)) return slot;
            }
            if (found == key) return slot;
        }
        return slots;
    }

    std::atomic<Address>* keys_ = nullptr;
    std::atomic<std::uint8_t>* nodes_ = nullptr;
};

/// Which pages there are. Of long runs the page tables tell, in a sixth of the time that a query takes: a
/// simulated move is such a run, and what it costs, its queries before and after included, is no cost of
/// homing's.
class Present {
  public:
    explicit Present(Kernel& real) noexcept : real_(real) {}
    ~Present() { raw::close(descriptor_); }
    Present(const Present&) = delete;
    Present& operator=(const Present&) = delete;

    /// For each page 0 or more, or a negative errno; the errno where nothing could be learnt.
    int look(std::span<void* const> pages, std::span<int> status) noexcept {
        for (std::size_t i = 0; i < pages.size();) {
            const std::size_t run = run_of(pages.subspan(i));
            const std::size_t there = run < long_run ? 0 : first_of(pages.subspan(i, run));
            std::fill_n(status.data() + i, there, 0);
            i += there;
            if (there) continue;
            std::size_t end = std::min(pages.size(), i + std::min(run, long_run));
            while (end < pages.size() && run_of(pages.subspan(end)) < long_run)
                ++end;
            if (const int error = real_.query(pages.subspan(i, end - i), status.subspan(i, end - i)))
                return error;
            i = end;
        }
        return 0;
    }

  private:
    static constexpr std::size_t long_run = 16;
    static constexpr std::size_t longest_run = 128; ///< that is looked at in one go

    /// How many of the first pages follow one another in memory.
    static std::size_t run_of(std::span<void* const> pages) noexcept {
        const auto begin = reinterpret_cast<Address>(pages[0]);
        const std::size_t most = std::min(pages.size(), longest_run);
        std::size_t count = 1;
        while (count < most && reinterpret_cast<Address>(pages[count]) == begin + count * page_bytes())
            ++count;
        return count;
    }

    /// How many of the first pages of a run are there and have no other user (who would make them hard to
    /// move, as the zero page is).
    std::size_t first_of(std::span<void* const> run) noexcept {
        if (descriptor_ == not_opened) descriptor_ = raw::open("/proc/self/pagemap", O_RDONLY);
        if (descriptor_ < 0) return 0;
        const std::uint64_t first = reinterpret_cast<Address>(run[0]) / page_bytes();
        std::uint64_t entries[longest_run];
        const std::size_t bytes = run.size() * sizeof *entries;
        if (raw::read_at(descriptor_, entries, bytes, first * sizeof *entries) != static_cast<long>(bytes))
            return 0;
        constexpr std::uint64_t there = std::uint64_t{1} << 63 | std::uint64_t{1} << 56;
        return static_cast<std::size_t>(
            std::find_if(entries, entries + run.size(),
                         [](std::uint64_t entry) { return (entry & there) != there; }) -
            entries);
    }

    static constexpr int not_opened = std::numeric_limits<int>::min();
    Kernel& real_;
    int descriptor_ = not_opened; ///< or -errno
};

class AssumedKernel final : public Kernel {
  public:
    explicit AssumedKernel(int nodes) noexcept : nodes_(nodes) {
        has_table_ = placement_.reserve();
        char text[4096];
        int rank = 0;
        if (raw::read_file("/sys/devices/system/cpu/online", text, sizeof text) > 0) {
            for_each_index(text, [&](int cpu) {
                if (cpu < most_cpus) cpu_ranks_[cpu] = ++rank;
            });
        }
        cpus_ = std::max(rank, 1);
    }

    int query(std::span<void* const> pages, std::span<int> nodes) noexcept override {
        if (!has_table_) return real_.query(pages, nodes);
        if (const int error = Present(real_).look(pages, nodes)) return error;
        for (std::size_t i = 0; i < pages.size(); ++i) {
            if (nodes[i] >= 0) nodes[i] = placement_.node(reinterpret_cast<Address>(pages[i]));
        }
        return 0;
    }

    int move(std::span<void* const> pages, std::span<const int> targets,
             std::span<int> status) noexcept override {
        if (!has_table_) return ENOMEM;
        for (const int target : targets) {
            if (target < 0 || target >= nodes_) return ENODEV;
        }
        if (const int error = Present(real_).look(pages, status)) return error;
        for (std::size_t i = 0; i < pages.size(); ++i) {
            if (status[i] < 0) continue;
            const bool moved = placement_.move(reinterpret_cast<Address>(pages[i]), targets[i]);
            status[i] = moved ? targets[i] : -ENOMEM;
        }
        return 0;
    }

    // Policies are placement, too. The real ones stay as the user has set them.
    int bind(Range, MemoryPolicy policy) noexcept override {
        return policy.nodes.bits & ~all_nodes().bits ? EINVAL : 0;
    }
    int policy_at(Address address, MemoryPolicy& policy) noexcept override {
        return real_.policy_at(address, policy);
    }
    int task_policy(MemoryPolicy& policy) noexcept override { return real_.task_policy(policy); }

    int allowed_nodes(NodeSet& nodes) noexcept override {
        nodes = all_nodes();
        return 0;
    }

    int protect(Range range, Access access) noexcept override { return real_.protect(range, access); }

    int current_node() noexcept override {
        const int saved = errno;
        const int cpu = ::sched_getcpu();
        errno = saved;
        return std::max(node_of_cpu(cpu), 0);
    }

    std::uint64_t free_bytes(int node) noexcept override {
        if (node < 0 || node >= nodes_) return 0;
        NodeSet real_nodes;
        real_.allowed_nodes(real_nodes);
        std::uint64_t sum = 0;
        for (int real_node = 0; real_node < max_nodes; ++real_node)
            if (real_nodes.has(real_node)) sum += real_.free_bytes(real_node);
        return sum / static_cast<unsigned>(nodes_);
    }

    int open_sampler(const SamplerEvent& event, int thread, std::size_t pages,
                     SamplerRing& ring) noexcept override {
        return real_.open_sampler(event, thread, pages, ring);
    }
    void close_sampler(SamplerRing& ring) noexcept override { real_.close_sampler(ring); }

    int node_of_cpu(int cpu) noexcept override {
        if (cpu < 0 || cpu >= most_cpus || cpu_ranks_[cpu] == 0) return -1;
        return (cpu_ranks_[cpu] - 1) * nodes_ / cpus_;
    }

  private:
    NodeSet all_nodes() const noexcept {
        return NodeSet{nodes_ == max_nodes ? ~std::uint64_t{0} : (std::uint64_t{1} << nodes_) - 1};
    }

    static constexpr int most_cpus = 8192;
    Kernel& real_ = linux_kernel();
    int nodes_;
    int cpus_ = 1;
    bool has_table_ = false;
    Placement placement_;
    std::uint16_t cpu_ranks_[most_cpus] = {}; ///< 1 for the first online CPU, ...; 0: not online
};

} // namespace

Kernel& assumed_kernel(int nodes) noexcept {
    // One for each number of nodes, made at its first use and never destroyed.
    static constinit std::atomic<AssumedKernel*> kernels[max_nodes + 1] = {};
    nodes = std::clamp(nodes, 1, max_nodes);
    AssumedKernel* kernel = kernels[nodes].load(std::memory_order_acquire);
    if (kernel) return *kernel;
    void* memory = raw::map_memory(sizeof(AssumedKernel));
    if (!memory) return linux_kernel();
    auto* made = new (memory) AssumedKernel(nodes);
    // Of two threads that come first together one wins; the other's, not yet used, is only address space.
    return kernels[nodes].compare_exchange_strong(kernel, made, std::memory_order_acq_rel) ? *made : *kernel;
}

} // namespace homing
