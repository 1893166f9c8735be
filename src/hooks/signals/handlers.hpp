// The program's own handler of a signal that came to ours.
#pragma once

#include <csignal>

namespace homing::hooks {

/// Runs it as the kernel would have: on the stack that the kernel would have chosen, with that mask. Called
/// by a signal's handler with what it got; where that is possible it does not come back, and the program's
/// handler returns to the interrupted code itself. What goes on afterwards must not need this thread to be
/// inside.
void run_handler(const struct sigaction& action, int signal, siginfo_t* info, void* context) noexcept;

} // namespace homing::hooks
