// A fence between two sides of which one runs all the time and the other seldom: the light side is free (the
// compiler keeps the order), the heavy side makes every thread of the process that runs just now pass a fence
// (membarrier). After both have passed, each sees what the other wrote before, or was seen by it: what two
// sequentially consistent fences would give.
//
// Where the kernel has no membarrier, the light side is an ordinary fence.
#pragma once

#include <atomic>

namespace homing {

namespace detail {
inline constinit std::atomic<bool> fences_on_both_sides{true};
}

/// At the start of the process, before other threads run: registering later takes milliseconds.
void prepare_asymmetric_fences() noexcept;

/// [any thread, signal]
inline void asymmetric_fence_light() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__builtin_expect(detail::fences_on_both_sides.load(std::memory_order_relaxed), 0))
        std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// False: the kernel has refused (a filter was installed since). What light sides have written so far may not
/// be seen this time; from now on they are ordinary fences.
[[nodiscard]] bool asymmetric_fence_heavy() noexcept;

} // namespace homing
