// A mutex that a thread holds across its fork(2), so that what it guards is whole in the child.
//
// A signal handler may fork while its thread is within the guarded work, or within another fork: it must not
// wait for itself then, and is told that what is guarded may be half done.
#pragma once

#include "base/raw_calls.hpp"

#include <atomic>
#include <cstdint>
#include <linux/futex.h>

namespace homing {

/// Like RawMutex it calls nothing of the C library. Its state is who holds it: a handler never finds it taken
/// by its own thread and nobody named.
class ForkMutex {
  public:
    void lock() noexcept {
        std::uint64_t now = free;
        if (state_.compare_exchange_strong(now, self(), std::memory_order_acquire)) return;
        for (;;) {
            now = state_.load(std::memory_order_relaxed);
            if (now == free) {
                // Others may have waited beside this thread.
                if (state_.compare_exchange_weak(now, self() | awaited, std::memory_order_acquire)) return;
            } else if ((now & awaited) || state_.compare_exchange_weak(now, now | awaited)) {
                raw::call(SYS_futex, half_of_state(), FUTEX_WAIT_PRIVATE,
                          static_cast<std::uint32_t>(now | awaited), nullptr);
            }
        }
    }
    void unlock() noexcept {
        if (state_.exchange(free, std::memory_order_release) & awaited)
            raw::call(SYS_futex, half_of_state(), FUTEX_WAKE_PRIVATE, 1);
    }

    /// Before a fork, by the thread that forks. False: it is within the guarded work, which is not whole.
    bool lock_for_fork() noexcept {
        if (!held_by_this_thread())
            lock();
        else if (forks_ == 0)
            return false;
        ++forks_;
        return true;
    }
    /// After it, in parent and child. False: the fork does not hold the mutex, nothing was done.
    bool unlock_after_fork() noexcept {
        if (!held_for_fork()) return false;
        if (--forks_ == 0) unlock();
        return true;
    }
    /// Is what is guarded whole, and this thread's alone, because of its fork?
    bool held_for_fork() const noexcept { return held_by_this_thread() && forks_ > 0; }
    bool held_by_this_thread() const noexcept {
        return (state_.load(std::memory_order_relaxed) & ~awaited) == self();
    }

  private:
    static constexpr std::uint64_t free = 0, awaited = 1;
    alignas(8) static constinit thread_local const char this_thread; ///< its address tells threads apart

    static std::uint64_t self() noexcept { return reinterpret_cast<std::uintptr_t>(&this_thread); }
    /// The half that the kernel compares: 32 bits, the lower ones on all machines that homing knows.
    void* half_of_state() noexcept { return &state_; }

    std::atomic<std::uint64_t> state_{free};
    int forks_ = 0; ///< of the holder that are under way, one within the other
};

alignas(8) inline constinit thread_local const char ForkMutex::this_thread = 0;

} // namespace homing
