// The signal hook: homing's handler of SIGSEGV, and the program's own beside it.
//
// Until the first window is prepared every call goes to the kernel as the program makes it. From then on, the
// kernel knows our handler only; what the program installs is kept here, shown to it as if it were in force,
// and run for every fault that is not ours (handlers.hpp). What the kernel does where SIGSEGV is blocked is
// done here, because it never is (masks.hpp).
#include "hooks/signals/signals.hpp"

#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "hooks/export.hpp"
#include "hooks/signals/handlers.hpp"
#include "hooks/signals/kernel_actions.hpp"
#include "sources/windows.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace homing::hooks {
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

bool has_handler(const struct sigaction& action) noexcept {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

/// The program's own from now on. Where that is a handler, faults are to come to it that are not ours: a
/// window that is open now would be in its way in serial code.
void keep_action(const struct sigaction& action) noexcept {
    set_chained(action);
    Windows* windows = armed_windows.load(std::memory_order_acquire);
    if (windows && has_handler(action)) windows->abandon();
}

/// What the C library's function returns of every action: how a handler goes back to the kernel.
constinit std::atomic<void (*)()> restorer{nullptr};
constinit std::atomic<int> restorer_flag{0};
/// Kernels from 5.11 on keep no flags that they do not know.
constinit std::atomic<bool> keeps_known_flags{false};
constexpr int unknown_flag = 0x400; // SA_UNSUPPORTED, for ever unknown

/// The action as the program reads it back.
struct sigaction as_read_back(struct sigaction action) noexcept {
    constexpr unsigned known = SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART |
                               SA_NODEFER | SA_RESETHAND | 0x800; // SA_EXPOSE_TAGBITS
    auto flags = static_cast<unsigned>(action.sa_flags);
    if (keeps_known_flags.load(std::memory_order_relaxed)) flags &= known;
    action.sa_flags = static_cast<int>(flags) | restorer_flag.load(std::memory_order_relaxed);
    action.sa_restorer = restorer.load(std::memory_order_relaxed);
    put_mask(action.sa_mask, get_mask(action.sa_mask) & ~(mask_of(SIGKILL) | mask_of(SIGSTOP)));
    return action;
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

/// Address of the instruction that faulted.
Address instruction_of(const void* context) noexcept {
    const auto* user = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
    return static_cast<Address>(user->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return static_cast<Address>(user->uc_mcontext.pc);
#else
    return user ? 0 : 0;
#endif
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
        if (action.sa_flags & SA_RESETHAND) {
            struct sigaction none = action;
            none.sa_handler = SIG_DFL;
            set_chained(none);
        }
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
            window = in;
            held_up = 0;
            if (foreign <= most_late) foreign = 0;
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

/// Since when no fault of this thread can be one of ours: in its handler, it has found that no page is taken
/// away, and no window has been built since. So a program that takes faults of its own pays for one more of
/// them a window and thread, and for each other one it pays a look at this.
struct Proof {
    const Windows* windows = nullptr;
    std::uint32_t window = 0;
    bool given = false;

    bool holds(const Windows* now) const noexcept {
        if (now && now->sequence() == 0) return true; // there has been none yet
        return given && windows == now && (!now || window == now->sequence());
    }
    /// Waits a while for other threads that give pages back just now. (This one may have been interrupted in
    /// the middle of that.)
    void look(const Windows* now) noexcept {
        constexpr int most_looks = 256;
        windows = now;
        window = now ? now->sequence() : 0; // before the look
        given = !now || now->is_quiet();
        for (int looks = 0; !given && looks < most_looks && window == now->sequence(); ++looks) {
            raw::call(SYS_sched_yield);
            given = now->is_quiet();
        }
    }
};
constinit thread_local Proof proof;

/// A fault came, and was not proved to be the program's. True: the access is to be made again.
bool take_fault(Windows* windows, Address address, const void* context) noexcept {
    Windows::Verdict verdict = Windows::Verdict::foreign;
    if (windows) {
        const bool own = is_inside();
        const Inside inside; // our own system calls on that page are not the program's
        verdict = windows->fault(address, is_write(context), instruction_of(context), own);
    }
    if (verdict == Windows::Verdict::counted) {
        retries = {};
        return true;
    }
    const std::uint32_t window = windows ? windows->sequence() : 0;
    // A page of this window, open by now: once this may be a fault that was on its way. Otherwise the window
    // ends, which proves the next one.
    const bool on_its_way = verdict == Windows::Verdict::late &&
                            !(retries.address == address && retries.window == window && retries.foreign > 0);
    const bool again = retries.again(address, window, verdict);
    if (verdict != Windows::Verdict::retry && !on_its_way && has_handler(get_chained())) {
        if (windows) windows->cut_short();
        proof.look(windows);
    }
    if (!again) {
        retries = {};
        if (windows) windows->abandon();
        return false;
    }
    if (windows && verdict == Windows::Verdict::retry && retries.held_up % Retries::patience == 0)
        windows->open_again(address);
    else if (retries.held_up + retries.foreign > Retries::patience)
        raw::call(SYS_sched_yield);
    return true;
}

void handler(int signal, siginfo_t* info, void* context) noexcept {
    if (info->si_code > 0) {
        const int saved = errno;
        Windows* windows = active_windows.load(std::memory_order_acquire);
        if (!proof.holds(windows) && take_fault(windows, reinterpret_cast<Address>(info->si_addr), context)) {
            errno = saved;
            return;
        }
        errno = saved;
    }
    pass_on(signal, info, context);
}

bool install_ours() noexcept {
    struct sigaction ours = {};
    ours.sa_sigaction = handler;
    constexpr int flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    ours.sa_flags = flags | unknown_flag;
    // Another handler that ran between claiming a granule and opening it, and touched it, would wait for
    // itself. All bits, and not sigfillset(): the C library keeps the signal out of it by which it cancels a
    // thread (PTHREAD_CANCEL_ASYNCHRONOUS) in the middle of a handler.
    std::memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
    ::sigdelset(&ours.sa_mask, SIGSEGV);
    struct sigaction now = {};
    if (real_sigaction(SIGSEGV, &ours, nullptr) != 0 || real_sigaction(SIGSEGV, nullptr, &now) != 0)
        return false;
    restorer.store(now.sa_restorer, std::memory_order_relaxed);
    restorer_flag.store(now.sa_flags & ~(flags | unknown_flag), std::memory_order_relaxed);
    keeps_known_flags.store(!(now.sa_flags & unknown_flag), std::memory_order_relaxed);
    return true;
}

bool replaced_by_others() noexcept {
    struct sigaction now = {};
    real_sigaction(SIGSEGV, nullptr, &now);
    return now.sa_sigaction != handler;
}

/// This thread blocks SIGSEGV in spite of us (a system call past the hooks, or before we were loaded).
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
    if (const char* reason = forbidden_early.load(std::memory_order_acquire)) return reason;
    if (!installed.load(std::memory_order_acquire)) {
        struct sigaction theirs = {};
        if (real_sigaction(SIGSEGV, nullptr, &theirs) != 0) return "sigaction fails";
        set_chained(theirs);
        installer.store(raw::call(SYS_getpid), std::memory_order_relaxed);
        installed.store(true, std::memory_order_release);
        if (!install_ours()) return "sigaction fails";
        // Only now: what waits for the program to unblock SIGSEGV comes to our handler.
        translate_masks();
        let_faults_through_handlers();
        prepare_stacks();
    } else if (replaced_by_others()) {
        return "the program installs a SIGSEGV handler past us";
    }
    let_faults_through_here();
    give_stack();
    return blocked_here() ? "SIGSEGV is blocked" : nullptr;
}

const void* own_handler() noexcept {
    if (!installed.load(std::memory_order_acquire)) return nullptr;
    const struct sigaction action = get_chained();
    // One union holds both kinds.
    return has_handler(action) ? reinterpret_cast<const void*>(action.sa_handler) : nullptr;
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

} // namespace homing::hooks

using namespace homing::hooks;

namespace {

/// Is the program's action for the signal kept here? Not in a child: its handlers are the kernel's business,
/// and one of vfork() shares our memory.
bool is_kept_here(int signal) noexcept {
    return signal == SIGSEGV && installed.load(std::memory_order_acquire) &&
           homing::raw::call(SYS_getpid) == installer.load(std::memory_order_relaxed);
}

/// A child without the handlers that fork(2) runs (vfork, _Fork, clone) takes our handler away from itself:
/// what it would touch must be open to it. One of vfork() shares the windows with us, the others have copies.
void child_takes_handler(int signal) noexcept {
    if (signal != SIGSEGV || !installed.load(std::memory_order_acquire)) return;
    if (homing::Windows* windows = homing::active_windows.load(std::memory_order_acquire))
        windows->abandon_and_wait();
}

/// A handler with what the function that installs it always asks for.
sighandler_t install(Real<sighandler_t(int, sighandler_t)>& real, int signal, sighandler_t function,
                     int flags, Mask mask) noexcept {
    if (is_kept_here(signal)) {
        const struct sigaction before = get_chained();
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
    ours.sa_sigaction = handler;
    return before == ours.sa_handler ? get_chained().sa_handler : before;
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
        const struct sigaction before = get_chained();
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
        const struct sigaction before = get_chained();
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
    *old = before.sa_sigaction == handler ? get_chained() : before;
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
