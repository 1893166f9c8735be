// No handler of the program's runs on this thread while one of these lives.
//
// A handler that interrupted homing's own work on the right to access pages would wait for itself as soon as
// it made a call that waits for that work to be over (measured: 25 s and more of a run of 0.8 s, with a timer
// of 20 ms whose handler makes a system call); a collector's that stops the thread there would wait for it.
#pragma once

#include "base/raw_calls.hpp"

#include <csignal>
#include <cstdint>

namespace homing {

class SignalsBlocked {
  public:
    SignalsBlocked() noexcept {
        raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &but_faults, &before_, sizeof before_);
    }
    ~SignalsBlocked() { raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    /// The kernel ends a process that blocks a fault of its own.
    static constexpr std::uint64_t but_faults = [] {
        std::uint64_t mask = ~std::uint64_t{0};
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
            mask &= ~(std::uint64_t{1} << (signal - 1));
        return mask;
    }();

    std::uint64_t before_ = 0;
};

} // namespace homing
