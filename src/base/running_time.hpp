// For how long the process has run. A process that is stopped (SIGSTOP, a batch system that suspends jobs, a
// laptop that sleeps) does not run: what may be spent in proportion to the run must not grow meanwhile.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <ctime>

namespace homing {

/// Processor time in seconds by one of the kernel's clocks. Under another clock than the real one: that one.
inline double processor_seconds(clockid_t clock) noexcept {
    if (the_clock.load(std::memory_order_relaxed) != monotonic_seconds) return clock_seconds();
    timespec now{};
    if (::clock_gettime(clock, &now) != 0) return clock_seconds();
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Of all threads of the process.
inline double process_seconds() noexcept { return processor_seconds(CLOCK_PROCESS_CPUTIME_ID); }

/// Of this thread: what a piece of work costs, however often the thread is put aside meanwhile.
inline double thread_seconds() noexcept { return processor_seconds(CLOCK_THREAD_CPUTIME_ID); }

class RunningTime {
  public:
    /// Begins to count.
    void start(double now) noexcept {
        start_ = looked_ = now;
        used_ = process_seconds();
        stopped_ = 0;
    }
    /// Seconds since start(), without those in which the process had no processor. Asking often costs little:
    /// the process's own clock, a system call, is read now and then.
    double seconds(double now) noexcept {
        if (now - looked_ >= interval) {
            const double used = process_seconds();
            stopped_ += std::max(0.0, now - looked_ - (used - used_));
            looked_ = now;
            used_ = used;
        }
        return now - start_ - stopped_;
    }

  private:
    static constexpr double interval = 5e-3;
    double start_ = 0;
    double looked_ = 0;
    double used_ = 0; ///< processor time, when it was looked at
    double stopped_ = 0;
};

} // namespace homing
