// homing's handler of SIGSEGV comes and goes.
//
// Until the first window is prepared every call goes to the kernel as the program makes it. From then on, the
// kernel knows our handler only (fault_handler.hpp); what the program installs is kept (own_action.hpp,
// calls_signals.cpp), and run for every fault that is not ours (handlers.hpp). What the kernel does where
// SIGSEGV is blocked is done here, because it never is (masks.hpp).
#include "hooks/signals/signals.hpp"

#include "base/raw_calls.hpp"
#include "hooks/signals/fault_handler.hpp"
#include "hooks/signals/kernel_actions.hpp"
#include "hooks/signals/own_action.hpp"
#include "hooks/signals/thread_masks.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <sys/syscall.h>

namespace homing::hooks {
namespace {

constinit std::atomic<bool> installed{false};
constinit std::atomic<long> installer{0}; ///< the process

bool install_ours() noexcept {
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART | unknown_flag;
    // Another handler that ran between claiming a granule and opening it, and touched it, would wait for
    // itself. All bits, and not sigfillset(): the C library keeps the signal out of it by which it cancels a
    // thread (PTHREAD_CANCEL_ASYNCHRONOUS) in the middle of a handler.
    std::memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
    ::sigdelset(&ours.sa_mask, SIGSEGV);
    struct sigaction now = {};
    if (real_sigaction(SIGSEGV, &ours, nullptr) != 0 || real_sigaction(SIGSEGV, nullptr, &now) != 0)
        return false;
    learn_reading_back(ours, now);
    return true;
}

bool replaced_by_others() noexcept {
    struct sigaction now = {};
    real_sigaction(SIGSEGV, nullptr, &now);
    return now.sa_sigaction != on_fault;
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
    if (!is_installed()) {
        struct sigaction theirs = {};
        if (real_sigaction(SIGSEGV, nullptr, &theirs) != 0) return "sigaction fails";
        set_own_action(theirs);
        installer.store(raw::call(SYS_getpid), std::memory_order_relaxed);
        installed.store(true, std::memory_order_release);
        if (!install_ours()) return "sigaction fails";
        const auto [blocked, caught] = look_at_threads(blocks_stand_in_only);
        let_faults_through_handlers(caught);
        // Only now: what waits for the program to unblock SIGSEGV comes to our handler.
        translate_masks(blocked != 0);
        let_faults_through_handlers(); // that were installed meanwhile
        prepare_stacks();
    } else if (replaced_by_others()) {
        return "the program installs a SIGSEGV handler past us";
    }
    let_faults_through_here();
    give_stack();
    return blocked_here() ? "SIGSEGV is blocked" : nullptr;
}

const void* own_handler() noexcept {
    if (!is_installed()) return nullptr;
    const struct sigaction action = own_action();
    // One union holds both kinds.
    return has_handler(action) ? reinterpret_cast<const void*>(action.sa_handler) : nullptr;
}

void hand_back_handler() noexcept {
    forbid_windows("the program's own handler is in force");
    if (!is_installed() || replaced_by_others()) return;
    const struct sigaction theirs = own_action();
    if (real_sigaction(SIGSEGV, &theirs, nullptr) == 0) installed.store(false, std::memory_order_release);
}

Inheritance::Inheritance() noexcept {
    Mask now = 0;
    if (translates_masks() && raw::call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &now, sizeof now) == 0 &&
        blocks_for_program(now)) {
        const Mask asked = (now & ~stand_in) | segv;
        raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &asked, nullptr, sizeof asked);
        mask_ = now;
    }
    if (is_installed() && own_action().sa_handler == SIG_IGN && !replaced_by_others()) {
        const struct sigaction asked = own_action();
        ignores_ = real_sigaction(SIGSEGV, &asked, nullptr) == 0;
    }
}

Inheritance::~Inheritance() {
    if (ignores_) install_ours();
    if (mask_) raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask_, nullptr, sizeof mask_);
}

bool is_kept_here(int signal) noexcept {
    return signal == SIGSEGV && is_installed() &&
           raw::call(SYS_getpid) == installer.load(std::memory_order_relaxed);
}

bool is_installed() noexcept { return installed.load(std::memory_order_acquire); }

} // namespace homing::hooks
