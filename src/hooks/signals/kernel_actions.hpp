// What the kernel has of the program's signal handlers. A program may install one by a system call that no
// hook sees (Go's runtime does), so the kernel is asked, not a list of calls that were seen.
#pragma once

#include "hooks/signals/masks.hpp"

namespace homing::hooks {

/// The kernel's struct sigaction, as rt_sigaction(2) reads and writes it.
struct KernelAction {
    void* handler;
    unsigned long flags;
    void* restorer;
    Mask mask;

    bool operator==(const KernelAction&) const = default;
};

/// False: there is no such signal.
bool read_action(int signal, KernelAction& action) noexcept;

/// While a handler runs that blocks SIGSEGV, a window's fault ends the process: in all handlers but that of
/// SIGSEGV itself the stand-in takes its place (masks.hpp). And whether one asks for an alternate stack is
/// noted. A system call for each of these signals: all that may have a handler.
void let_faults_through_handlers(Mask caught = ~Mask{0}) noexcept;
/// Does a handler of another signal than SIGSEGV ask for an alternate stack, as far as we know?
bool a_handler_asks_for_a_stack() noexcept;
/// One that has just been installed does.
void a_handler_has_asked_for_a_stack() noexcept;

} // namespace homing::hooks
