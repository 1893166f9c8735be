// A lock that calls nothing of the C library: those functions are interposed, by us and by others, and may be
// called before anybody is ready for them. As std::mutex, for short sections.
#pragma once

#include "base/raw_calls.hpp"

#include <atomic>
#include <linux/futex.h>

namespace homing {

class RawMutex {
  public:
    void lock() noexcept {
        int expected = free;
        if (state_.compare_exchange_strong(expected, held, std::memory_order_acquire)) return;
        while (state_.exchange(awaited, std::memory_order_acquire) != free)
            raw::call(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, static_cast<int>(awaited), nullptr);
    }
    void unlock() noexcept {
        if (state_.exchange(free, std::memory_order_release) == awaited)
            raw::call(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1);
    }

  private:
    enum State : int { free, held, awaited };
    std::atomic<int> state_{free};
};

} // namespace homing
