// The clock that decisions use. Tests give the engine a clock of their own: simulated time has nothing to do
// with ours.
#pragma once

#include <atomic>
#include <ctime>

namespace homing {

/// Seconds since any fixed moment.
using Clock = double (*)() noexcept;

inline double monotonic_seconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline constinit std::atomic<Clock> the_clock{monotonic_seconds};

inline double clock_seconds() noexcept { return the_clock.load(std::memory_order_relaxed)(); }

} // namespace homing
