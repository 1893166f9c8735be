// One machine that plays several nodes: what the kernel is asked about placement is answered from a table,
// everything else is the real kernel. For measuring observation and decisions where there is one node only.
#include "kernel/kernel.hpp"
#include "kernel/threads_of_process.hpp"

#include "base/index_list.hpp"
#include "base/page_scan.hpp"
#include "base/random.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <limits>
#include <linux/mempolicy.h>
#include <new>
#include <optional>
#include <sched.h>

namespace homing {
namespace {

/// Which node each page is on: 0 unless it was moved. An open hash of 2 MiB chunks, each with a byte for
/// every page; as large as its limit from the start, but resident only where it is used: chunks that follow
/// one another in memory do so in the table. Any thread, also in a signal handler, may read and write; a
/// chunk is never taken back.
class Placement {
  public:
    bool reserve() noexcept {
        keys_ = static_cast<std::atomic<Address>*>(raw::map_memory(slots * sizeof(std::atomic<Address>)));
        nodes_ = static_cast<std::atomic<std::uint8_t>*>(raw::map_memory(slots * pages_per_chunk()));
        return keys_ && nodes_;
    }

    /// Pages are mostly asked about in order: the place of the last one's chunk is remembered here.
    struct Hint {
        Address chunk = ~Address{0};
        std::size_t slot = 0;
    };

    int node(Address page, Hint& hint) const noexcept {
        if (!at_chunk(page, hint, false)) return 0;
        return at(hint.slot, page).load(std::memory_order_relaxed);
    }

    /// False where the table is full.
    bool move(Address page, int node, Hint& hint) noexcept {
        if (!at_chunk(page, hint, node != 0)) return node == 0;
        at(hint.slot, page).store(static_cast<std::uint8_t>(node), std::memory_order_relaxed);
        return true;
    }

  private:
    static constexpr std::size_t slots = std::size_t{1} << 18; // 512 GiB of memory that has moved
    static constexpr std::size_t neighbours = 64;
    static constexpr std::size_t probe_limit = 1024;

    static std::size_t pages_per_chunk() noexcept { return huge_page_bytes / page_bytes(); }
    std::atomic<std::uint8_t>& at(std::size_t slot, Address page) const noexcept {
        return nodes_[slot * pages_per_chunk() + page % huge_page_bytes / page_bytes()];
    }

    /// Has the page's chunk a slot?
    bool at_chunk(Address page, Hint& hint, bool add) const noexcept {
        const Address chunk = page / huge_page_bytes;
        if (hint.chunk != chunk || (add && hint.slot == slots)) hint = {chunk, find(chunk, add)};
        return hint.slot != slots;
    }

    std::size_t find(Address chunk, bool add) const noexcept {
        const Address key = chunk + 1; // 0 is an empty slot
        const std::size_t place = table_place(chunk / neighbours, 18) + chunk % neighbours;
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
            const Stretch stretch = first_of(pages.subspan(i));
            if (stretch.there)
                std::fill_n(status.data() + i, stretch.pages, 0);
            else if (const int error =
                         real_.query(pages.subspan(i, stretch.pages), status.subspan(i, stretch.pages)))
                return error;
            i += stretch.pages;
        }
        return 0;
    }

  private:
    static constexpr std::size_t long_run = 16;
    static constexpr std::size_t longest_run = 8192; ///< that is looked at in one go
    static constexpr std::size_t most_entries = 512; ///< that are read in one go

    /// How many of the first pages follow one another in memory.
    static std::size_t run_of(std::span<void* const> pages) noexcept {
        const auto begin = reinterpret_cast<Address>(pages[0]);
        const std::size_t most = std::min(pages.size(), longest_run);
        std::size_t count = 1;
        while (count < most && reinterpret_cast<Address>(pages[count]) == begin + count * page_bytes())
            ++count;
        return count;
    }

    /// The first of some pages: all of them there and none the zero page, which cannot be moved; or to be
    /// asked about.
    struct Stretch {
        std::size_t pages;
        bool there;
    };

    Stretch first_of(std::span<void* const> pages) noexcept {
        const std::size_t run = run_of(pages);
        if (run >= long_run) {
            if (descriptor_ == not_opened) descriptor_ = raw::open("/proc/self/pagemap", O_RDONLY);
            if (descriptor_ < 0) return {run, false};
            const Address begin = reinterpret_cast<Address>(pages[0]);
            const std::optional<Range> found = first_pages(descriptor_, {begin, begin + run * page_bytes()},
                                                           page_is_present, page_is_zero_page);
            if (!found) return by_entries(begin, std::min(run, most_entries));
            if (found->begin > begin) return {(found->begin - begin) / page_bytes(), false};
            return {found->bytes() / page_bytes(), true};
        }
        std::size_t end = run;
        while (end < pages.size() &&
               run_of(pages.subspan(end, std::min(long_run, pages.size() - end))) < long_run)
            ++end;
        return {end, false};
    }

    /// The page's entry says that it is there and nobody else has it: so it is not the zero page.
    Stretch by_entries(Address begin, std::size_t pages) noexcept {
        std::uint64_t entries[most_entries];
        const std::size_t bytes = pages * sizeof *entries;
        if (raw::read_at(descriptor_, entries, bytes, begin / page_bytes() * sizeof *entries) !=
            static_cast<long>(bytes))
            return {pages, false};
        const auto there = [](std::uint64_t entry) {
            constexpr std::uint64_t present_and_own = std::uint64_t{1} << 63 | std::uint64_t{1} << 56;
            return (entry & present_and_own) == present_and_own;
        };
        std::size_t same = 1;
        while (same < pages && there(entries[same]) == there(entries[0]))
            ++same;
        return {same, there(entries[0])};
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
        Placement::Hint hint;
        for (std::size_t i = 0; i < pages.size(); ++i) {
            if (nodes[i] >= 0) nodes[i] = placement_.node(reinterpret_cast<Address>(pages[i]), hint);
        }
        return 0;
    }

    int populated(std::span<const Range> ranges, std::span<std::uint8_t> found) noexcept override {
        return real_.populated(ranges, found);
    }

    std::uint64_t page_faults() noexcept override { return real_.page_faults(); }

    int move(std::span<void* const> pages, std::span<const int> targets,
             std::span<int> status) noexcept override {
        if (!has_table_) return ENOMEM;
        for (const int target : targets) {
            if (target < 0 || target >= nodes_) return ENODEV;
        }
        if (const int error = Present(real_).look(pages, status)) return error;
        Placement::Hint hint;
        for (std::size_t i = 0; i < pages.size(); ++i) {
            if (status[i] < 0) continue;
            const bool moved = placement_.move(reinterpret_cast<Address>(pages[i]), targets[i], hint);
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
    Mappings mappings() noexcept override { return real_.mappings(); }

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
    std::vector<Thread> threads() override {
        return threads_of_process([this](int cpu) { return node_of_cpu(cpu); });
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
