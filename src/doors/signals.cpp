// The signal door: homing's handler of SIGSEGV, and the program's own beside it.
//
// From the first window on, the kernel knows our handler only; what the program installs is kept here, shown
// to it as if it were in force, and called for every fault that is not ours. SIGSEGV is taken out of every
// mask that the program blocks (a blocked SIGSEGV would kill it at a window's fault); it is told the mask
// that it asked for.
#include "doors/signals.hpp"

#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "doors/export.hpp"
#include "phases/regions.hpp"
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
constinit Real<int(int, const sigset_t*, sigset_t*)> real_pthread_sigmask{"pthread_sigmask"};
constinit Real<int(const stack_t*, stack_t*)> real_sigaltstack{"sigaltstack"};

// The program's own action for SIGSEGV. Written by its sigaction calls, read by the handler: a sequence
// number makes a half-written one visible.
struct Chained {
    std::atomic<unsigned> sequence{0};
    struct sigaction action = {};
};
constinit Chained chained;
constinit std::atomic<bool> installed{false};
constinit thread_local bool program_blocks_segv = false;

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

/// Ours runs with all signals blocked; the program's runs with what was blocked before and what its action
/// asks for.
void unmask_for(const struct sigaction& action, const void* context) noexcept {
    sigset_t mask;
    ::sigorset(&mask, &static_cast<const ucontext_t*>(context)->uc_sigmask, &action.sa_mask);
    ::sigdelset(&mask, SIGSEGV);
    real_pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

bool has_handler(const struct sigaction& action) noexcept {
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

/// The fault is the program's: its handler, or the default (the instruction faults again and the process ends
/// as it would have without us).
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
    struct sigaction action = get_chained();
    if (action.sa_flags & SA_RESETHAND) {
        struct sigaction none = {};
        set_chained(none);
    }
    if (has_handler(action)) {
        unmask_for(action, context);
        if (action.sa_flags & SA_SIGINFO)
            action.sa_sigaction(signal, info, context);
        else
            action.sa_handler(signal);
        return; // the kernel restores the mask of the interrupted code
    }
    if (info->si_code <= 0) { // sent by kill or raise: it will not come again by itself
        if (action.sa_handler == SIG_IGN) return;
        struct sigaction none = {};
        none.sa_handler = SIG_DFL;
        real_sigaction(signal, &none, nullptr);
        ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);
        return;
    }
    struct sigaction none = {};
    none.sa_handler = SIG_DFL;
    real_sigaction(signal, &none, nullptr);
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

bool replaced_by_others() noexcept {
    struct sigaction now = {};
    real_sigaction(SIGSEGV, nullptr, &now);
    return now.sa_sigaction != handler;
}

/// Some thread blocks SIGSEGV in spite of us (a raw system call, or before we were loaded): /proc knows.
bool blocked_here() noexcept {
    sigset_t mask;
    return real_pthread_sigmask(SIG_SETMASK, nullptr, &mask) == 0 && ::sigismember(&mask, SIGSEGV) == 1;
}

} // namespace

constinit std::atomic<const char*> forbidden_early{nullptr};

void forbid_windows(const char* reason) noexcept {
    const char* expected = nullptr;
    forbidden_early.compare_exchange_strong(expected, reason);
}

const char* prepare_handler() noexcept {
    if (const char* reason = forbidden_early.load(std::memory_order_acquire)) return reason;
    if (installed.load(std::memory_order_acquire)) {
        if (replaced_by_others()) return "the program installs a SIGSEGV handler past us";
        return blocked_here() ? "SIGSEGV is blocked" : nullptr;
    }
    if (blocked_here()) return "SIGSEGV is blocked";
    struct sigaction ours = {};
    ours.sa_sigaction = handler;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    // Another handler that ran between claiming a granule and opening it, and touched it, would wait for
    // itself. All bits, and not sigfillset(): the C library keeps the signal out of it by which it cancels a
    // thread (PTHREAD_CANCEL_ASYNCHRONOUS) in the middle of a handler.
    std::memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
    ::sigdelset(&ours.sa_mask, SIGSEGV);
    struct sigaction theirs = {};
    if (real_sigaction(SIGSEGV, nullptr, &theirs) != 0) return "sigaction fails";
    set_chained(theirs);
    installed.store(true, std::memory_order_release);
    if (real_sigaction(SIGSEGV, &ours, nullptr) != 0) return "sigaction fails";
    return nullptr;
}

} // namespace homing::doors

using namespace homing::doors;

namespace {

/// Signals whose handler's mask holds SIGSEGV in the eyes of the program.
constinit std::atomic<bool> masks_segv[_NSIG] = {};

constexpr std::size_t kernel_mask_bytes = _NSIG / 8;

/// A copy of a mask without SIGSEGV; null stays null.
const sigset_t* without_segv(const sigset_t* mask, sigset_t& copy) noexcept {
    if (!mask || ::sigismember(mask, SIGSEGV) != 1 || homing::phases::aside()) return mask;
    copy = *mask;
    ::sigdelset(&copy, SIGSEGV);
    return &copy;
}

template <class Function>
int mask_call(Function&& call, int how, const sigset_t* set, sigset_t* old) noexcept {
    const bool blocked_before = program_blocks_segv;
    // The kernel gets masks of our own: in a watched array, the program's would be a bad address to it.
    // Of both only what the kernel knows of a mask is read and written.
    sigset_t asked{};
    sigset_t before{};
    if (set) std::memcpy(&asked, set, kernel_mask_bytes);
    sigset_t copy;
    const sigset_t* given = !set ? nullptr : how == SIG_UNBLOCK ? &asked : without_segv(&asked, copy);
    const int result = call(how, given, old ? &before : nullptr);
    if (result != 0) return result;
    if (old) {
        if (blocked_before) ::sigaddset(&before, SIGSEGV);
        std::memcpy(old, &before, kernel_mask_bytes);
    }
    if (set && !homing::phases::aside()) {
        const bool named = ::sigismember(&asked, SIGSEGV) == 1;
        if (how == SIG_SETMASK)
            program_blocks_segv = named;
        else if (named)
            program_blocks_segv = how == SIG_BLOCK;
    }
    return result;
}

} // namespace

extern "C" {

HOMING_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
    if (signal == SIGSEGV && installed.load(std::memory_order_acquire)) {
        const struct sigaction before = get_chained();
        if (action) set_chained(*action);
        if (old) *old = before;
        return 0;
    }
    // A handler that touches arrays must be able to take our fault: SIGSEGV leaves its mask, and is shown in
    // it.
    const bool known = signal > 0 && signal < _NSIG;
    const bool masked_before = known && masks_segv[signal].load(std::memory_order_acquire);
    struct sigaction copy;
    const bool masks =
        action && ::sigismember(&action->sa_mask, SIGSEGV) == 1 && known && !homing::phases::aside();
    if (masks) {
        copy = *action;
        ::sigdelset(&copy.sa_mask, SIGSEGV);
    }
    const int result = real_sigaction(signal, masks ? &copy : action, old);
    if (result == 0) {
        if (old && masked_before) ::sigaddset(&old->sa_mask, SIGSEGV);
        if (action && known) masks_segv[signal].store(masks, std::memory_order_release);
    }
    return result;
}

HOMING_EXPORT sighandler_t signal(int number, sighandler_t function) noexcept {
    static constinit Real<sighandler_t(int, sighandler_t)> real{"signal"};
    if (number != SIGSEGV || !installed.load(std::memory_order_acquire)) return real(number, function);
    const struct sigaction before = get_chained();
    struct sigaction action = {};
    action.sa_handler = function;
    action.sa_flags = SA_RESTART;
    set_chained(action);
    return before.sa_handler;
}

// System V semantics: one signal a handler, which is not masked meanwhile.
HOMING_EXPORT sighandler_t sysv_signal(int number, sighandler_t function) noexcept {
    static constinit Real<sighandler_t(int, sighandler_t)> real{"sysv_signal"};
    if (number != SIGSEGV || !installed.load(std::memory_order_acquire)) return real(number, function);
    const struct sigaction before = get_chained();
    struct sigaction action = {};
    action.sa_handler = function;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    set_chained(action);
    return before.sa_handler;
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

HOMING_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    return mask_call(real_pthread_sigmask.get(), how, set, old);
}

HOMING_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    static constinit Real<int(int, const sigset_t*, sigset_t*)> real{"sigprocmask"};
    return mask_call(real.get(), how, set, old);
}

HOMING_EXPORT int sigsuspend(const sigset_t* mask) {
    static constinit Real<int(const sigset_t*)> real{"sigsuspend"};
    sigset_t copy;
    return real(without_segv(mask, copy));
}

// An alternate stack must never be armed: the kernel could not deliver the very fault. Stacks that were
// installed before windows are in use are asked for by the engine (current_alternate_stack).
HOMING_EXPORT int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
    stack_t asked{};
    stack_t before{};
    if (stack) asked = *stack;
    if (stack && !(asked.ss_flags & SS_DISABLE)) note_alternate_stack(asked.ss_sp, asked.ss_size);
    const int result = real_sigaltstack(stack ? &asked : nullptr, old ? &before : nullptr);
    if (result == 0 && old) *old = before;
    return result;
}

} // extern "C"

namespace homing::doors {
namespace {
constexpr int most_stacks = 256;
struct Stack {
    std::atomic<Address> begin{0};
    std::atomic<std::size_t> bytes{0};
};
constinit Stack stacks[most_stacks];
constinit std::atomic<int> stack_count{0};
} // namespace

void note_alternate_stack(const void* begin, std::size_t bytes) noexcept {
    const auto address = reinterpret_cast<Address>(begin);
    const int known = std::min(stack_count.load(std::memory_order_acquire), most_stacks);
    for (int i = 0; i < known; ++i)
        if (stacks[i].begin.load(std::memory_order_acquire) == address &&
            stacks[i].bytes.load(std::memory_order_acquire) >= bytes)
            return;
    const int at = stack_count.fetch_add(1, std::memory_order_acq_rel);
    if (at < most_stacks) {
        stacks[at].bytes.store(bytes, std::memory_order_release);
        stacks[at].begin.store(address, std::memory_order_release);
    }
    if (Windows* windows = active_windows.load(std::memory_order_acquire)) {
        if (at < most_stacks)
            windows->exclude({address, address + bytes});
        else
            windows->forbid("more than 256 alternate signal stacks");
    }
}

bool exclude_alternate_stacks(Windows& windows) noexcept {
    const int known = stack_count.load(std::memory_order_acquire);
    if (known > most_stacks) {
        windows.forbid("more than 256 alternate signal stacks");
        return false;
    }
    for (int i = 0; i < known; ++i) {
        const Address begin = stacks[i].begin.load(std::memory_order_acquire);
        if (begin) windows.exclude({begin, begin + stacks[i].bytes.load(std::memory_order_acquire)});
    }
    return true;
}

} // namespace homing::doors
