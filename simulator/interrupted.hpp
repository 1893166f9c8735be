// A program that a signal ends (Ctrl-C, a batch system's SIGTERM): what was counted up to then is written.
//
// The handler takes no lock and allocates nothing: it notes the signal. The next access of any thread, where
// the program is in code of its own, ends the simulation and then the process, by the same signal. Where no
// access comes within a while (all threads wait), or the signal comes once more, the process ends at once,
// with the counts of the iterations before. A program that sends the signal itself goes no further than the
// call that sends it, and one that comes to its end meanwhile ends by the signal.
#pragma once

#include <atomic>

namespace homing::simulator {

/// From now on; only signals are taken whose action is the default. Once; later calls do nothing.
void take_signals() noexcept;

/// The signal that has come; 0: none.
extern constinit std::atomic<int> signal_came;

/// The thread is in no code of homing's: where a signal has come to this process, it ends here.
void end_if_signalled() noexcept;

/// Ends the process as the signal would have done. For the thread of an access; does not return.
[[noreturn]] void end_by_signal() noexcept;

} // namespace homing::simulator
