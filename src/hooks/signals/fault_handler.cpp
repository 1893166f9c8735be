#include "hooks/signals/fault_handler.hpp"

#include "base/inside.hpp"
#include "base/kept_errno.hpp"
#include "base/raw_calls.hpp"
#include "hooks/signals/handlers.hpp"
#include "hooks/signals/masks.hpp"
#include "hooks/signals/own_action.hpp"
#include "hooks/signals/signals.hpp"
#include "sources/windows.hpp"

#include <cstring>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace homing::hooks {
namespace {

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
    if (blocks_for_program(get_mask(interrupted.uc_sigmask))) {
        // A fault cannot wait: without us the kernel would not even ask the handler (which may be what
        // faults).
        if (sent)
            keep_waiting(*info, interrupted);
        else
            end_by_default(signal);
        return;
    }
    let_faults_through(interrupted.uc_sigmask);
    const struct sigaction action = own_action();
    if (has_handler(action)) {
        if (action.sa_flags & SA_RESETHAND) {
            struct sigaction none = action;
            none.sa_handler = SIG_DFL;
            set_own_action(none);
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
        return ++foreign <= (has_handler(own_action()) ? most_foreign : most_before_the_end);
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
    if (verdict != Windows::Verdict::retry && !on_its_way && has_handler(own_action())) {
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

} // namespace

void on_fault(int signal, siginfo_t* info, void* context) noexcept {
    if (info->si_code > 0) {
        const KeptErrno kept;
        Windows* windows = active_windows.load(std::memory_order_acquire);
        if (!proof.holds(windows) && take_fault(windows, reinterpret_cast<Address>(info->si_addr), context))
            return;
    }
    pass_on(signal, info, context);
}

} // namespace homing::hooks
