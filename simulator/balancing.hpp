// The described kernel's own NUMA balancing (`--balancing 1`), as Linux does it (kernel/sched/fair.c, 6.1):
// every so often the next piece of the process's memory is marked; the next thread that touches a marked page
// takes a hint fault; and the fault sends the page to the thread's node, unless the page's last faults say
// that other nodes use it as well.
//
// What is simplified. Time is accesses: the model has no other. The scan period does not adapt (as with equal
// least and greatest periods). Threads are not moved to their memory. What Linux knows of a group of threads
// is kept for the process, which is one group from its first shared fault on.
#pragma once

#include "base/pages.hpp"

#include <atomic>
#include <cstdint>

namespace homing::simulator {

struct Thread;

struct BalancingTotals {
    std::atomic<std::uint64_t> hint_faults{0};
    std::atomic<std::uint64_t> moved_pages{0};
};
BalancingTotals& balancing_totals() noexcept;

/// How often a piece was marked. Filters that are older than the last time must be forgotten.
std::uint32_t balancing_round() noexcept;

/// Accesses after which a thread must ask clock_balancing() again; 0: nothing is balanced.
std::int64_t balancing_tick() noexcept;

/// Tell the clock of a thread's accesses; marks the next piece where it is time.
void clock_balancing(Thread& one) noexcept;

/// `one` touched a marked page, and was the first: a hint fault.
void hint_fault(const Thread& one, Address address) noexcept;

} // namespace homing::simulator
