// The signal door: homing's handler of SIGSEGV, and the program's own beside it.
//
// From the first window on, the kernel knows our handler only; what the program installs is kept here, shown
// to it as if it were in force, and run for every fault that is not ours (handlers.hpp). What the kernel does
// where SIGSEGV is blocked is done here, because it never is (masks.hpp).
#include "doors/signals.hpp"

#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "doors/export.hpp"
#include "doors/handlers.hpp"
#include "references/windows.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace homing::doors {
namespace {

constinit Real<int(int, const struct sigaction*, struct sigaction*)> real_sigaction{"sigaction"};

// The program's own action for SIGSEGV. Written by its sigaction calls, read by the handler: a sequence
// number makes a half-written one visible.
struct Chained {
    std::atomic<unsigned> sequence{0};
    struct sigaction action = {};
};
constinit Chained chained;
constinit std::atomic<bool> installed{false};
constinit std::atomic<long> installer{0}; ///< the process

void set_chained(const struct sigaction& action) noexcept {
    chained.sequence.fetch_add(1, std::memory_order_acq_rel);
    chained.action = action;
    chained.sequence.fetch_add(1, std::memory_order_acq_rel);
}

struct sigaction get_chained() noexcept {
    struct sigaction copy;
    unsigned before = 0;
    int tries = 0;
    do {
        before = chained.sequence.load(std::memory_order_acquire);
        copy = chained.action;
    } while ((before & 1 || chained.sequence.load(std::memory_order_acquire) != before) && ++tries < 1000);
    return copy;
}

bool is_write(const void* context) noexcept {
    const auto* user = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
    return (user->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#elif defined(__aarch64__)
    // The kernel adds the fault's syndrome to the frame; bit 6 (WnR) says that it was a write.
    const auto* at = reinterpret_cast<const char*>(user->uc_mcontext.__reserved);
    const char* end = at + sizeof user->uc_mcontext.__reserved;
    _aarch64_ctx head;
    while (at + sizeof(esr_context) <= end) {
        std::memcpy(&head, at, sizeof head);
        if (head.magic == ESR_MAGIC) {
            esr_context found;
            std::memcpy(&found, at, sizeof found);
            return (found.esr >> 6 & 1) != 0;
        }
        if (head.magic == 0 || head.size < sizeof head) break;
        at += head.size;
    }
    return false;
#else
    (void)user;
    return false;
#endif
}

bool has_handler(const struct sigaction& action) noexcept {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

void end_by_default(int signal) noexcept {
    struct sigaction none = {};
    none.sa_handler = SIG_DFL;
    real_sigaction(signal, &none, nullptr);
}

/// Somebody sent a signal to a thread that blocks it in the eyes of the program: from now on the kernel
/// blocks it there, too, and has it until the program asks for it (sigwait, signalfd) or lets it come. A
/// window's fault would kill that thread: there are no more windows.
void keep_waiting(const siginfo_t& info, ucontext_t& interrupted) noexcept {
    constexpr const char* reason = "a SIGSEGV that was sent waits to be taken";
    forbid_windows(reason);
    if (Windows* windows = active_windows.load(std::memory_order_acquire)) windows->forbid(reason);
    raw::call(SYS_rt_sigprocmask, SIG_BLOCK, &segv, nullptr, sizeof segv);
    put_mask(interrupted.uc_sigmask, get_mask(interrupted.uc_sigmask) | segv);
    const long process = raw::call(SYS_getpid);
    if (info.si_code == SI_TKILL)
        raw::call(SYS_rt_tgsigqueueinfo, process, raw::call(SYS_gettid), SIGSEGV, &info);
    else if (raw::call(SYS_rt_sigqueueinfo, process, SIGSEGV, &info) !=
             0) // a process may not say who else sent it
        raw::call(SYS_kill, process, SIGSEGV);
}

/// The fault is the program's: its handler, or the default (the instruction faults again and the process ends
/// as it would have without us). Last of all in our handler.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
    auto& interrupted = *static_cast<ucontext_t*>(context);
    const bool sent = info->si_code <= 0; // by kill or raise: it will not come again by itself
    if (get_mask(interrupted.uc_sigmask) & stand_in) {
        // A fault cannot wait: without us the kernel would not even ask the handler (which may be what
        // faults).
        if (sent)
            keep_waiting(*info, interrupted);
        else
            end_by_default(signal);
        return;
    }
    const struct sigaction action = get_chained();
    if (has_handler(action)) {
        if (action.sa_flags & SA_RESETHAND) set_chained({});
        run_handler(action, signal, info, context);
        return;
    }
    if (!sent) {
        end_by_default(signal);
    } else if (action.sa_handler != SIG_IGN) {
        end_by_default(signal);
        raw::call(SYS_tgkill, raw::call(SYS_getpid), raw::call(SYS_gettid), signal);
    }
}

/// How often one access of this thread has faulted: what goes on without progress is not a late fault of
/// ours.
struct Retries {
    Address address = 0;
    std::uint32_t window = 0;
    int held_up = 0; ///< in this window, while another thread was opening the page
    int foreign = 0; ///< in turn

    /// Is this one to be tried again?
    bool again(Address at, std::uint32_t in, Windows::Verdict verdict) noexcept {
        if (address != at) {
            *this = {at, in, 0, 0};
        } else if (window != in) {
            // Late faults of several windows on one page add up to nothing; but what is not of ours goes on
            // from window to window.
            *this = {at, in, 0, foreign <= most_late ? 0 : foreign};
        }
        if (verdict == Windows::Verdict::retry) {
            foreign = 0;
            return ++held_up <= most_held_up;
        }
        // Where the process would end, some more tries are lost on nobody.
        return ++foreign <= (has_handler(get_chained()) ? most_foreign : most_before_the_end);
    }

    static constexpr int most_held_up = 1 << 14;
    static constexpr int most_late = 4;
    static constexpr int most_foreign = 16;
    static constexpr int most_before_the_end = 1024;
    static constexpr int patience = 64; ///< then others run first
};
constinit thread_local Retries retries;

void handler(int signal, siginfo_t* info, void* context) noexcept {
    const int saved = errno;
    if (info->si_code > 0) {
        Windows* windows = active_windows.load(std::memory_order_acquire);
        const auto address = reinterpret_cast<Address>(info->si_addr);
        Windows::Verdict verdict = Windows::Verdict::foreign;
        if (windows) {
            const Inside inside; // our own system calls on that page are not the program's
            verdict = windows->fault(address, is_write(context));
        }
        if (verdict == Windows::Verdict::counted) {
            retries = {};
            errno = saved;
            return;
        }
        if (retries.again(address, windows ? windows->sequence() : 0, verdict)) {
            if (windows && verdict == Windows::Verdict::retry && retries.held_up % Retries::patience == 0)
                windows->open_again(address);
            else if (retries.held_up + retries.foreign > Retries::patience)
                raw::call(SYS_sched_yield);
            errno = saved;
            return;
        }
        retries = {};
        if (windows) windows->abandon();
    }
    errno = saved;
    pass_on(signal, info, context);
}

bool install_ours() noexcept {
    struct sigaction ours = {};
    ours.sa_sigaction = handler;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    // Another handler that ran between claiming a granule and opening it, and touched it, would wait for
    // itself. All bits, and not sigfillset(): the C library keeps the signal out of it by which it cancels a
    // thread (PTHREAD_CANCEL_ASYNCHRONOUS) in the middle of a handler.
    std::memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
    ::sigdelset(&ours.sa_mask, SIGSEGV);
    return real_sigaction(SIGSEGV, &ours, nullptr) == 0;
}

bool replaced_by_others() noexcept {
    struct sigaction now = {};
    real_sigaction(SIGSEGV, nullptr, &now);
    return now.sa_sigaction != handler;
}

/// This thread blocks SIGSEGV in spite of us (a system call past the doors, or before we were loaded).
bool blocked_here() noexcept {
    Mask mask = 0;
    return raw::call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &mask, sizeof mask) == 0 && (mask & segv);
}

} // namespace

constinit std::atomic<const char*> forbidden_early{nullptr};

void forbid_windows(const char* reason) noexcept {
    const char* expected = nullptr;
    forbidden_early.compare_exchange_strong(expected, reason);
}

const char* prepare_handler() noexcept {
    give_stack();
    if (const char* reason = forbidden_early.load(std::memory_order_acquire)) return reason;
    if (installed.load(std::memory_order_acquire)) {
        if (replaced_by_others()) return "the program installs a SIGSEGV handler past us";
        return blocked_here() ? "SIGSEGV is blocked" : nullptr;
    }
    if (blocked_here()) return "SIGSEGV is blocked";
    struct sigaction theirs = {};
    if (real_sigaction(SIGSEGV, nullptr, &theirs) != 0) return "sigaction fails";
    if (asked_for_stack(SIGSEGV)) theirs.sa_flags |= SA_ONSTACK;
    put_mask(theirs.sa_mask, for_program(get_mask(theirs.sa_mask)));
    set_chained(theirs);
    installer.store(raw::call(SYS_getpid), std::memory_order_relaxed);
    installed.store(true, std::memory_order_release);
    return install_ours() ? nullptr : "sigaction fails";
}

void hand_back_handler() noexcept {
    forbid_windows("the program's own handler is in force");
    if (!installed.load(std::memory_order_acquire) || replaced_by_others()) return;
    const struct sigaction theirs = get_chained();
    if (real_sigaction(SIGSEGV, &theirs, nullptr) == 0) installed.store(false, std::memory_order_release);
}

Inheritance::Inheritance() noexcept {
    Mask now = 0;
    if (translates_masks() && raw::call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &now, sizeof now) == 0 &&
        (now & stand_in)) {
        const Mask asked = (now & ~stand_in) | segv;
        raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &asked, nullptr, sizeof asked);
        mask_ = now;
    }
    if (installed.load(std::memory_order_acquire) && get_chained().sa_handler == SIG_IGN &&
        !replaced_by_others()) {
        const struct sigaction asked = get_chained();
        ignores_ = real_sigaction(SIGSEGV, &asked, nullptr) == 0;
    }
}

Inheritance::~Inheritance() {
    if (ignores_) install_ours();
    if (mask_) raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask_, nullptr, sizeof mask_);
}

} // namespace homing::doors

using namespace homing::doors;

namespace {

/// Is the program's action for the signal kept here? Not in a child: its handlers are the kernel's business,
/// and one of vfork() shares our memory.
bool is_kept_here(int signal) noexcept {
    return signal == SIGSEGV && installed.load(std::memory_order_acquire) &&
           homing::raw::call(SYS_getpid) == installer.load(std::memory_order_relaxed);
}

/// A handler with what the function that installs it always asks for.
sighandler_t install(Real<sighandler_t(int, sighandler_t)>& real, int signal, sighandler_t function,
                     int flags) noexcept {
    if (is_kept_here(signal)) {
        const struct sigaction before = get_chained();
        struct sigaction action = {};
        action.sa_handler = function;
        action.sa_flags = flags;
        set_chained(action);
        return before.sa_handler;
    }
    const sighandler_t before = real(signal, function);
    if (before == SIG_ERR) return before;
    remember_asked(signal, false);
    struct sigaction ours = {};
    ours.sa_sigaction = handler;
    return before == ours.sa_handler ? get_chained().sa_handler : before;
}

} // namespace

extern "C" {

HOMING_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
    if (is_kept_here(signal)) {
        const struct sigaction before = get_chained();
        if (action) set_chained(*action);
        if (old) *old = before;
        return 0;
    }
    if (!translates_masks() || signal <= 0 || signal >= _NSIG) return real_sigaction(signal, action, old);
    // A handler that touches arrays must be able to take our fault: SIGSEGV leaves its mask, and is shown in
    // it.
    struct sigaction given = {};
    struct sigaction before = {};
    const bool asked_before = asked_for_stack(signal);
    if (action) {
        given = *action;
        put_mask(given.sa_mask, for_kernel(get_mask(action->sa_mask)));
        given.sa_flags = flags_for_kernel(action->sa_flags);
    }
    const int result = real_sigaction(signal, action ? &given : nullptr, old ? &before : nullptr);
    if (result != 0) return result;
    if (action) remember_asked(signal, (action->sa_flags & SA_ONSTACK) != 0);
    if (old) {
        put_mask(before.sa_mask, for_program(get_mask(before.sa_mask)));
        if (asked_before) before.sa_flags |= SA_ONSTACK;
        *old = before.sa_sigaction == handler ? get_chained() : before;
    }
    return result;
}

HOMING_EXPORT sighandler_t signal(int number, sighandler_t function) noexcept {
    static constinit Real<sighandler_t(int, sighandler_t)> real{"signal"};
    return install(real, number, function, SA_RESTART);
}

// System V semantics: one signal a handler, which is not masked meanwhile.
HOMING_EXPORT sighandler_t sysv_signal(int number, sighandler_t function) noexcept {
    static constinit Real<sighandler_t(int, sighandler_t)> real{"sysv_signal"};
    return install(real, number, function, static_cast<int>(SA_RESETHAND | SA_NODEFER));
}
HOMING_EXPORT sighandler_t __sysv_signal(int number, sighandler_t function) noexcept {
    return sysv_signal(number, function);
}
HOMING_EXPORT sighandler_t bsd_signal(int number, sighandler_t function) noexcept {
    return signal(number, function);
}
HOMING_EXPORT sighandler_t ssignal(int number, sighandler_t function) noexcept {
    return signal(number, function);
}

} // extern "C"
