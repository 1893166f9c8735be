// The calls by which a program installs handlers, reads them back, and changes its masks by system calls.
#include "base/raw_calls.hpp"
#include "hooks/export.hpp"
#include "hooks/signals/fault_handler.hpp"
#include "hooks/signals/kernel_actions.hpp"
#include "hooks/signals/own_action.hpp"
#include "hooks/signals/signals.hpp"
#include "sources/windows.hpp"

#include <cerrno>
#include <csignal>
#include <sys/syscall.h>

using namespace homing::hooks;

namespace {

/// A child without the handlers that fork(2) runs (vfork, _Fork, clone) takes our handler away from itself:
/// what it would touch must be open to it. One of vfork() shares the windows with us, the others have copies.
void child_takes_handler(int signal) noexcept {
    if (signal != SIGSEGV || !is_installed()) return;
    if (homing::Windows* windows = homing::active_windows.load(std::memory_order_acquire))
        windows->abandon_and_wait();
}

/// A handler with what the function that installs it always asks for.
sighandler_t install(Real<sighandler_t(int, sighandler_t)>& real, int signal, sighandler_t function,
                     int flags, Mask mask) noexcept {
    if (is_kept_here(signal)) {
        const struct sigaction before = own_action();
        struct sigaction action = {};
        action.sa_handler = function;
        action.sa_flags = flags;
        put_mask(action.sa_mask, mask);
        keep_action(as_read_back(action));
        return before.sa_handler;
    }
    child_takes_handler(signal);
    const sighandler_t before = real(signal, function);
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    return before == ours.sa_handler ? own_action().sa_handler : before;
}

sighandler_t install_lasting(int number, sighandler_t function) noexcept {
    static constinit Real<sighandler_t(int, sighandler_t)> real{"signal"};
    return install(real, number, function, SA_RESTART, mask_of(number));
}

/// System V semantics: one signal a handler, which is not masked meanwhile.
sighandler_t install_once(int number, sighandler_t function) noexcept {
    static constinit Real<sighandler_t(int, sighandler_t)> real{"sysv_signal"};
    return install(real, number, function, static_cast<int>(SA_RESETHAND | SA_NODEFER), 0);
}

/// rt_sigaction(2) as the program called it by its number.
long action_call_by_number(const long* arguments) noexcept {
    const int signal = static_cast<int>(arguments[0]);
    const auto* action = reinterpret_cast<const KernelAction*>(arguments[1]);
    auto* old = reinterpret_cast<KernelAction*>(arguments[2]);
    const auto by_number = [&](const KernelAction* given, KernelAction* before) {
        return homing::raw::call(SYS_rt_sigaction, signal, given, before, arguments[3]);
    };
    if (!translates_masks() || arguments[3] != sizeof(Mask)) return by_number(action, old);
    if (is_kept_here(signal)) {
        const struct sigaction before = own_action();
        if (action) {
            struct sigaction given = {};
            given.sa_handler = reinterpret_cast<sighandler_t>(action->handler);
            given.sa_flags = static_cast<int>(action->flags);
            put_mask(given.sa_mask, action->mask);
            keep_action(as_read_back(given));
        }
        if (old)
            *old = {reinterpret_cast<void*>(before.sa_handler), static_cast<unsigned>(before.sa_flags),
                    reinterpret_cast<void*>(before.sa_restorer), get_mask(before.sa_mask)};
        return 0;
    }
    KernelAction given{};
    KernelAction before{};
    if (action) {
        child_takes_handler(signal);
        given = *action;
        given.mask = for_kernel(given.mask);
        if (given.flags & SA_ONSTACK) a_handler_has_asked_for_a_stack();
    }
    const long result = by_number(action ? &given : nullptr, old ? &before : nullptr);
    if (result != 0 || !old) return result;
    before.mask = for_program(before.mask);
    *old = before;
    return result;
}

} // namespace

namespace homing::hooks {

bool signal_call_by_number(long number, const long* arguments, long& result) noexcept {
    switch (number) {
    case SYS_rt_sigprocmask:
        result = mask_call_by_number(arguments);
        return true;
    case SYS_rt_sigaction:
        result = action_call_by_number(arguments);
        return true;
    case SYS_sigaltstack:
        result = ::sigaltstack(reinterpret_cast<const stack_t*>(arguments[0]),
                               reinterpret_cast<stack_t*>(arguments[1]));
        if (result != 0) result = -errno;
        return true;
    default:
        return false;
    }
}

} // namespace homing::hooks

extern "C" {

HOMING_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
    if (is_kept_here(signal)) {
        const struct sigaction before = own_action();
        if (action) keep_action(as_read_back(*action));
        if (old) *old = before;
        return 0;
    }
    if (!translates_masks() || signal <= 0 || signal >= _NSIG) return real_sigaction(signal, action, old);
    // A handler that touches arrays must be able to take our fault: SIGSEGV leaves its mask, and is shown in
    // it.
    struct sigaction given = {};
    struct sigaction before = {};
    if (action) {
        child_takes_handler(signal);
        given = *action;
        put_mask(given.sa_mask, for_kernel(get_mask(action->sa_mask)));
        if (given.sa_flags & SA_ONSTACK) a_handler_has_asked_for_a_stack();
    }
    const int result = real_sigaction(signal, action ? &given : nullptr, old ? &before : nullptr);
    if (result != 0 || !old) return result;
    put_mask(before.sa_mask, for_program(get_mask(before.sa_mask)));
    *old = before.sa_sigaction == on_fault ? own_action() : before;
    return result;
}

HOMING_EXPORT sighandler_t signal(int number, sighandler_t function) noexcept {
    return install_lasting(number, function);
}
HOMING_EXPORT sighandler_t bsd_signal(int number, sighandler_t function) noexcept {
    return install_lasting(number, function);
}
HOMING_EXPORT sighandler_t ssignal(int number, sighandler_t function) noexcept {
    return install_lasting(number, function);
}
HOMING_EXPORT sighandler_t sysv_signal(int number, sighandler_t function) noexcept {
    return install_once(number, function);
}
HOMING_EXPORT sighandler_t __sysv_signal(int number, sighandler_t function) noexcept {
    return install_once(number, function);
}

} // extern "C"
