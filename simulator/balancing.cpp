#include "balancing.hpp"

#include "tables.hpp"

#include <algorithm>
#include <array>
#include <linux/mempolicy.h>

namespace homing::simulator {
namespace {

/// Ticks of a scan period: the clock is late by as much of it at most. By reason: a small part.
constexpr std::int64_t ticks_of_a_period = 16;
/// The least and the most accesses between two looks at the clock: with fewer the slow path is all there is,
/// with more a thread's filter is not forgotten for long.
constexpr std::int64_t least_tick = 1000;
constexpr std::int64_t most_tick = 1'000'000;
/// Linux: while the process has been scanned this often or less, a first fault, or one of the same thread as
/// the last, is enough.
constexpr std::uint32_t early_scans = 4;
/// Linux (ACTIVE_NODE_FRACTION): a node with so many times the faults of another may take its pages.
constexpr std::uint64_t much_busier = 3;

/// Faults by node, as Linux keeps them: those before the last whole scan count half as much with each scan.
class NodeFaults {
  public:
    void add(int node) noexcept {
        fresh_[static_cast<std::size_t>(node)].fetch_add(1, std::memory_order_relaxed);
    }
    void end_scan() noexcept {
        for (std::size_t node = 0; node < kept_.size(); ++node) {
            const std::uint64_t before = kept_[node].load(std::memory_order_relaxed);
            kept_[node].store(before / 2 + fresh_[node].exchange(0, std::memory_order_relaxed),
                              std::memory_order_relaxed);
        }
    }
    std::uint64_t operator[](int node) const noexcept {
        return kept_[static_cast<std::size_t>(node)].load(std::memory_order_relaxed);
    }

  private:
    std::array<std::atomic<std::uint64_t>, 64> kept_{};
    std::array<std::atomic<std::uint64_t>, 64> fresh_{};
};

constinit BalancingTotals counted;
constinit NodeFaults by_cpu;    ///< by the node of the thread
constinit NodeFaults by_memory; ///< by the node where the page was left
constinit std::atomic<bool> is_group{false};
constinit std::atomic<std::uint32_t> round{0};
constinit std::atomic<std::uint32_t> whole_scans{0};
constinit std::atomic<std::uint64_t> elapsed{0}; ///< accesses of each thread, on the average
constinit std::atomic<std::uint64_t> next_scan{0};
constinit std::mutex scanning;
constinit std::uint64_t cursor = 0; ///< the page where the next scan begins; with `scanning` held

/// Balancing leaves memory alone that has a policy: it is not marked, and a page that was marked before
/// stays.
bool has_policy(std::uint64_t page) noexcept {
    int mode = MPOL_DEFAULT;
    std::uint64_t nodes = 0;
    policy_of(page << table.page_shift, mode, nodes);
    if (mode == MPOL_DEFAULT) task_policy_of_caller(mode, nodes);
    return mode != MPOL_DEFAULT;
}

/// Mark the next piece. At the end of memory it goes on at the beginning the next time.
void scan() noexcept {
    const std::unique_lock lock(scanning, std::try_to_lock);
    if (!lock) return;
    std::uint64_t left = std::max<std::uint64_t>(1, stated->balancing.scan_bytes >> table.page_shift);
    for (; left > 0; ++cursor) {
        cursor = next_page_with_home(cursor);
        if (cursor == no_page) {
            cursor = 0;
            whole_scans.fetch_add(1, std::memory_order_relaxed);
            by_cpu.end_scan();
            by_memory.end_scan();
            break;
        }
        if (!has_policy(cursor) && mark(cursor)) --left;
    }
    round.fetch_add(1, std::memory_order_release);
}

/// Does the page go to `node`? last: who faulted on it before.
bool may_go(const Thread& one, int home, std::uint32_t last_thread, int last_node) noexcept {
    const bool first = last_thread == 0;
    const bool is_private = last_thread == static_cast<std::uint32_t>(one.id) + 1;
    if (whole_scans.load(std::memory_order_relaxed) <= early_scans && (first || is_private)) return true;
    if (!first && last_node != one.node) return false;
    if (is_private || !is_group.load(std::memory_order_relaxed)) return true;
    if (by_cpu[one.node] > by_cpu[home] * much_busier) return true;
    // With a margin of a quarter: memory is spread as the faults of the processors are.
    return by_cpu[one.node] * by_memory[home] * 3 > by_cpu[home] * by_memory[one.node] * 4;
}

} // namespace

BalancingTotals& balancing_totals() noexcept { return counted; }

std::uint32_t balancing_round() noexcept { return round.load(std::memory_order_acquire); }

std::int64_t balancing_tick() noexcept {
    const auto period = static_cast<std::int64_t>(stated->balancing.scan_accesses);
    return period == 0 ? 0 : std::clamp(period / ticks_of_a_period, least_tick, most_tick);
}

void clock_balancing(Thread& one) noexcept {
    const std::int64_t made = one.granted - one.context.left;
    const auto count = static_cast<std::int64_t>(thread_count());
    const std::int64_t whole = (made - one.clocked) / count;
    if (whole <= 0) return;
    one.clocked += whole * count;
    const std::uint64_t now =
        elapsed.fetch_add(static_cast<std::uint64_t>(whole), std::memory_order_relaxed) +
        static_cast<std::uint64_t>(whole);
    std::uint64_t due = next_scan.load(std::memory_order_relaxed);
    // The first scan is due after one period, too.
    if (now < due + stated->balancing.scan_accesses) return;
    if (next_scan.compare_exchange_strong(due, now, std::memory_order_relaxed)) scan();
}

void hint_fault(const Thread& one, Address address) noexcept {
    counted.hint_faults.fetch_add(1, std::memory_order_relaxed);
    const int home = home_of(address);
    if (home < 0) return;
    int last_node = nowhere;
    const std::uint32_t last = exchange_last_fault(address, one, last_node);
    if (last != 0 && last != static_cast<std::uint32_t>(one.id) + 1)
        is_group.store(true, std::memory_order_relaxed);
    int left_on = home;
    if (home != one.node && !has_policy(page_of(address)) && may_go(one, home, last, last_node) &&
        send(address, one.node) == 0) {
        counted.moved_pages.fetch_add(1, std::memory_order_relaxed);
        left_on = one.node;
    }
    by_cpu.add(one.node);
    by_memory.add(left_on);
}

} // namespace homing::simulator
