// Pages of the simulated machine: which node each lives on, who decided so, and what is missed on it.
#include "tables.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <linux/mempolicy.h>
#include <unistd.h>

namespace homing::simulator {
namespace {

struct Bound {
    Range range;
    int mode;
    std::uint64_t nodes;
};

constinit std::atomic<std::uint64_t> used_pages[64] = {};
constinit std::atomic<bool> any_bound{false};
constinit Kept<std::vector<Bound>> bound;

/// Pieces of the address space in which pages ever had homes: what a look at all pages goes through.
constexpr unsigned piece_bits = 30;
constinit std::uint8_t pieces[std::size_t{1} << (address_bits - piece_bits)] = {};
constinit std::atomic<std::uint64_t> oracle_gone{0}; ///< remote misses of the oracle on pages that are gone

bool has_room(int node) noexcept {
    const std::uint64_t bytes = stated->memory[static_cast<std::size_t>(node)];
    return bytes == 0 || used_pages[node].load(std::memory_order_relaxed) < bytes >> table.page_shift;
}

/// The node, or the nearest one that has room.
int with_room(int node) noexcept {
    if (has_room(node)) return node;
    int best = node;
    double least = 1e300;
    for (int other = 0; other < table.nodes; ++other) {
        if (other == node || !has_room(other)) continue;
        const auto from = static_cast<std::size_t>(node);
        const auto to = static_cast<std::size_t>(other);
        const double distance = from < stated->distances.size() && to < stated->distances[from].size()
                                    ? stated->distances[from][to]
                                    : 20;
        if (distance < least) {
            least = distance;
            best = other;
        }
    }
    return best;
}

/// The n-th node of a set.
int nth_node(std::uint64_t nodes, std::uint64_t n) noexcept {
    n %= static_cast<std::uint64_t>(std::popcount(nodes));
    for (; n > 0; --n)
        nodes &= nodes - 1;
    return std::countr_zero(nodes);
}

/// A policy that a thread set for its pages.
struct TaskPolicy {
    std::atomic<int> mode{MPOL_DEFAULT};
    std::atomic<std::uint64_t> nodes{0};
    std::atomic<bool> stated{false};
};
constinit TaskPolicy main_policy; ///< threads inherit it
constinit thread_local TaskPolicy own_policy;

/// Where a page goes that `node` touches first.
int first_home(std::uint64_t page, int node) noexcept {
    int mode = MPOL_DEFAULT;
    std::uint64_t nodes = 0;
    policy_of(page << table.page_shift, mode, nodes);
    if (nodes == 0 && mode == MPOL_DEFAULT) task_policy_of_caller(mode, nodes);
    if (nodes != 0) return preferred_home(page << table.page_shift, node, mode, nodes);
    const auto count = static_cast<std::uint64_t>(table.nodes);
    switch (stated->initial) {
    case Initial::round_robin:
        return with_room(static_cast<int>(page % count));
    case Initial::random:
        return with_room(static_cast<int>(mix(page + (stated->seed << 40)) % count));
    case Initial::single_node:
        return with_room(0);
    case Initial::first_touch:
        break;
    }
    return with_room(node);
}

/// The remote misses that are left with the page on the node that missed on it most.
std::uint64_t oracle_of(std::uint64_t page) noexcept {
    const std::uint32_t* counts = &table.page_misses[page * static_cast<std::uint64_t>(table.nodes)];
    std::uint64_t sum = 0;
    std::uint32_t most = 0;
    for (int node = 0; node < table.nodes; ++node) {
        sum += counts[node];
        most = std::max(most, counts[node]);
    }
    return sum - most;
}

} // namespace

int preferred_home(Address address, int node, int mode, std::uint64_t nodes) noexcept {
    constexpr int weighted_interleave = 6; // of Linux 6.9; all weights are 1 here
    if (mode == MPOL_INTERLEAVE || mode == weighted_interleave)
        return with_room(nth_node(nodes, page_of(address)));
    return with_room(nodes >> node & 1 ? node : std::countr_zero(nodes));
}

void set_task_policy(int mode, std::uint64_t nodes) noexcept {
    const auto set = [mode, nodes](TaskPolicy& policy) {
        policy.mode.store(mode, std::memory_order_relaxed);
        policy.nodes.store(nodes, std::memory_order_relaxed);
        policy.stated.store(true, std::memory_order_release);
    };
    set(own_policy);
    if (::gettid() == ::getpid()) set(main_policy);
}

void task_policy_of_caller(int& mode, std::uint64_t& nodes) noexcept {
    const TaskPolicy& policy = own_policy.stated.load(std::memory_order_acquire) ? own_policy : main_policy;
    mode = policy.mode.load(std::memory_order_relaxed);
    nodes = policy.nodes.load(std::memory_order_relaxed);
}

void place(std::uint64_t page, int home) noexcept {
    PageEntry entry = __atomic_load_n(&table.pages[page], __ATOMIC_RELAXED);
    if ((entry & home_mask) != 0) return;
    const auto wanted = static_cast<PageEntry>((entry & ~home_mask) | (home + 1));
    // Of two threads that touch it first one wins, as in a kernel.
    if (__atomic_compare_exchange_n(&table.pages[page], &entry, wanted, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
        used_pages[home].fetch_add(1, std::memory_order_relaxed);
        __atomic_store_n(&pieces[(page << table.page_shift) >> piece_bits], std::uint8_t{1},
                         __ATOMIC_RELAXED);
    }
}

int home_of(Address address) noexcept {
    return (__atomic_load_n(&table.pages[page_of(address)], __ATOMIC_RELAXED) & home_mask) - 1;
}

bool is_protected(Address address) noexcept {
    return (__atomic_load_n(&table.pages[page_of(address)], __ATOMIC_RELAXED) & armed) != 0;
}

void populate(Address address, int node) noexcept {
    const std::uint64_t page = page_of(address);
    if ((__atomic_load_n(&table.pages[page], __ATOMIC_RELAXED) & home_mask) == 0)
        place(page, first_home(page, node));
}
int send(Address address, int node) noexcept {
    if (node < 0 || node >= table.nodes) return ENODEV;
    const std::uint64_t page = page_of(address);
    PageEntry entry = __atomic_load_n(&table.pages[page], __ATOMIC_RELAXED);
    const int home = (entry & home_mask) - 1;
    if (home < 0) return EFAULT;
    if (home == node) return 0;
    if (!has_room(node)) return ENOMEM;
    const auto wanted = static_cast<PageEntry>((entry & ~home_mask) | (node + 1));
    if (!__atomic_compare_exchange_n(&table.pages[page], &entry, wanted, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return EBUSY;
    used_pages[home].fetch_sub(1, std::memory_order_relaxed);
    used_pages[node].fetch_add(1, std::memory_order_relaxed);
    const Address begin = page << table.page_shift;
    forget_lines(begin, begin + stated->page);
    return 0;
}

void forget(Range range) noexcept {
    const Address begin = align_up(range.begin & address_mask, stated->page);
    const Address end = align_down(range.end & address_mask, stated->page);
    if (begin >= end) return;
    const auto nodes = static_cast<std::uint64_t>(table.nodes);
    bool any = false;
    for (std::uint64_t page = page_of(begin); page < page_of(end); ++page) {
        const PageEntry entry = __atomic_exchange_n(&table.pages[page], std::uint8_t{0}, __ATOMIC_ACQ_REL);
        if (entry == 0) continue;
        any = true;
        oracle_gone.fetch_add(oracle_of(page), std::memory_order_relaxed);
        if ((entry & home_mask) != 0)
            used_pages[(entry & home_mask) - 1].fetch_sub(1, std::memory_order_relaxed);
        __atomic_store_n(&table.page_area[page], 0u, __ATOMIC_RELAXED);
        std::fill_n(&table.page_misses[page * nodes], nodes, 0u);
        std::fill_n(&table.page_seen[page * nodes], nodes, 0u);
        __atomic_store_n(&table.page_faults[page], 0u, __ATOMIC_RELAXED);
    }
    if (any) forget_lines(begin, end);
}

void move_pages_of(Range from, Range to) noexcept {
    const std::uint64_t pages = std::min(from.bytes(), to.bytes()) >> table.page_shift;
    if (pages == 0 || from.begin == to.begin) return;
    const auto nodes = static_cast<std::uint64_t>(table.nodes);
    const std::uint64_t source = page_of(from.begin);
    const std::uint64_t target = page_of(to.begin);
    for (std::uint64_t i = 0; i < pages; ++i) {
        __atomic_store_n(&table.pages[target + i], table.pages[source + i], __ATOMIC_RELAXED);
        table.pages[source + i] = 0;
        table.page_area[target + i] = table.page_area[source + i];
        table.page_area[source + i] = 0;
        table.page_faults[target + i] = table.page_faults[source + i];
        table.page_faults[source + i] = 0;
        std::copy_n(&table.page_misses[(source + i) * nodes], nodes,
                    &table.page_misses[(target + i) * nodes]);
        std::copy_n(&table.page_seen[(source + i) * nodes], nodes, &table.page_seen[(target + i) * nodes]);
        std::fill_n(&table.page_misses[(source + i) * nodes], nodes, 0u);
        std::fill_n(&table.page_seen[(source + i) * nodes], nodes, 0u);
    }
    forget_lines(source << table.page_shift, (source + pages) << table.page_shift);
}

void set_protection(Range range, bool protect) noexcept {
    for (std::uint64_t page = page_of(range.begin); page < page_of(range.end); ++page)
        if (protect)
            __atomic_fetch_or(&table.pages[page], armed, __ATOMIC_RELAXED);
        else
            __atomic_fetch_and(&table.pages[page], static_cast<PageEntry>(~armed), __ATOMIC_RELAXED);
}

std::uint64_t next_page_with_home(std::uint64_t page) noexcept {
    const unsigned shift = piece_bits - table.page_shift;
    for (std::uint64_t piece = page >> shift; piece < std::size(pieces); ++piece, page = piece << shift) {
        if (!__atomic_load_n(&pieces[piece], __ATOMIC_RELAXED)) continue;
        for (; page < (piece + 1) << shift; ++page)
            if ((__atomic_load_n(&table.pages[page], __ATOMIC_RELAXED) & home_mask) != 0) return page;
    }
    return no_page;
}

bool mark(std::uint64_t page) noexcept {
    PageEntry entry = __atomic_load_n(&table.pages[page], __ATOMIC_RELAXED);
    while ((entry & home_mask) != 0 && (entry & marked) == 0)
        if (__atomic_compare_exchange_n(&table.pages[page], &entry, static_cast<PageEntry>(entry | marked),
                                        false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    return false;
}

std::uint32_t exchange_last_fault(Address address, const Thread& one, int& last_node) noexcept {
    constexpr unsigned node_shift = 24; // above every thread's id
    static_assert(most_threads + 1 < 1 << node_shift);
    const auto now =
        static_cast<std::uint32_t>(one.node) << node_shift | (static_cast<std::uint32_t>(one.id) + 1);
    const std::uint32_t last =
        __atomic_exchange_n(&table.page_faults[page_of(address)], now, __ATOMIC_RELAXED);
    last_node = static_cast<int>(last >> node_shift);
    return last & ((1u << node_shift) - 1);
}

std::uint64_t free_bytes_of(int node) noexcept {
    if (node < 0 || node >= table.nodes) return 0;
    const std::uint64_t used = used_pages[node].load(std::memory_order_relaxed) << table.page_shift;
    const std::uint64_t all = stated->memory[static_cast<std::size_t>(node)];
    return all > used ? all - used : 0;
}

const std::uint32_t* page_misses(Address address) noexcept {
    return &table.page_misses[page_of(address) * static_cast<std::uint64_t>(table.nodes)];
}
std::uint32_t* page_misses_seen(Address address) noexcept {
    return &table.page_seen[page_of(address) * static_cast<std::uint64_t>(table.nodes)];
}

std::uint64_t oracle_remote() noexcept {
    std::uint64_t remote = oracle_gone.load(std::memory_order_relaxed);
    const std::uint64_t pages = std::uint64_t{1} << (piece_bits - table.page_shift);
    for (std::uint64_t piece = 0; piece < std::size(pieces); ++piece)
        for (std::uint64_t page = piece * pages; pieces[piece] && page < (piece + 1) * pages; ++page)
            if (table.pages[page] != 0) remote += oracle_of(page);
    return remote;
}

void bind_range(Range range, int mode, std::uint64_t nodes) {
    const std::lock_guard lock(seldom);
    std::erase_if(bound.value, [&](const Bound& one) {
        return range.begin <= one.range.begin && one.range.end <= range.end;
    });
    // Taking a policy off a part of a range leaves it on the rest.
    const bool covers = std::ranges::any_of(bound.value, [&](const Bound& one) {
        return range.begin < one.range.end && one.range.begin < range.end;
    });
    if (nodes != 0 || covers) bound.value.push_back({range, mode, nodes});
    any_bound.store(!bound.value.empty(), std::memory_order_release);
}

void policy_of(Address address, int& mode, std::uint64_t& nodes) {
    mode = MPOL_DEFAULT;
    nodes = 0;
    if (!any_bound.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(seldom);
    for (const Bound& one : bound.value) // the newest one counts
        if (one.range.contains(address)) {
            mode = one.mode & ~(MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING);
            nodes = one.nodes;
        }
}

} // namespace homing::simulator
