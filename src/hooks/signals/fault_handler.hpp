// homing's handler of SIGSEGV.
#pragma once

#include <csignal>

namespace homing::hooks {

/// What the kernel calls for each fault, and for each SIGSEGV that is sent. What is not ours is the
/// program's: its handler runs, or the default is done, as without us.
void on_fault(int signal, siginfo_t* info, void* context) noexcept;

} // namespace homing::hooks
