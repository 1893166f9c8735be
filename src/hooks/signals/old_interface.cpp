// The signal functions of BSD and System V. Inside the C library they reach the mask and the actions by ways
// that no hook sees, so they are made here of those that have hooks. What they return and refuse is what
// signal(7)'s pages and the C library say.
#include "hooks/export.hpp"
#include "hooks/signals/masks.hpp"

#include <cerrno>
#include <csignal>

namespace homing::hooks {
namespace {

/// Is it the C library's own function that is to be called: no window has come yet, or not even this library
/// is relocated?
bool is_librarys() noexcept { return !is_relocated() || !translates_masks(); }

/// BSD's masks hold the first 32 signals.
sigset_t set_of(int mask) noexcept {
    sigset_t set;
    ::sigemptyset(&set);
    put_mask(set, static_cast<unsigned>(mask));
    return set;
}

int change_mask(int how, const sigset_t* set) noexcept {
    sigset_t before;
    if (::sigprocmask(how, set, &before) != 0) return -1;
    return static_cast<int>(static_cast<unsigned>(get_mask(before)));
}

/// Of one signal. -1 with errno where there is no such signal.
int change_one(int how, int signal, sigset_t* before = nullptr) noexcept {
    sigset_t one;
    ::sigemptyset(&one);
    if (::sigaddset(&one, signal) != 0) return -1;
    return ::sigprocmask(how, &one, before);
}

int wait_without(int signal) {
    sigset_t set;
    if (::sigprocmask(SIG_BLOCK, nullptr, &set) != 0 || ::sigdelset(&set, signal) != 0) return -1;
    return ::sigsuspend(&set);
}

int wait_with(int mask) {
    const sigset_t set = set_of(mask);
    return ::sigsuspend(&set);
}

/// The action that the functions of System V ask for: no flags, nothing masked beside the signal.
int install(int signal, sighandler_t function, struct sigaction* before) noexcept {
    struct sigaction action = {};
    action.sa_handler = function;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(signal, &action, before);
}

} // namespace
} // namespace homing::hooks

using namespace homing::hooks;

// Their names are declared with attributes and under names that differ from one C library to another.
extern "C" {

HOMING_EXPORT int homing_sigblock(int mask) noexcept __asm__("sigblock");
HOMING_EXPORT int homing_sigsetmask(int mask) noexcept __asm__("sigsetmask");
HOMING_EXPORT int homing_siggetmask() noexcept __asm__("siggetmask");
HOMING_EXPORT int homing_sighold(int signal) noexcept __asm__("sighold");
HOMING_EXPORT int homing_sigrelse(int signal) noexcept __asm__("sigrelse");
HOMING_EXPORT int homing_sigignore(int signal) noexcept __asm__("sigignore");
HOMING_EXPORT sighandler_t homing_sigset(int signal, sighandler_t function) noexcept __asm__("sigset");
HOMING_EXPORT int homing_sigpause(int mask) __asm__("sigpause");
HOMING_EXPORT int homing_xpg_sigpause(int signal) __asm__("__xpg_sigpause");
HOMING_EXPORT int homing_own_sigpause(int value, int is_signal) __asm__("__sigpause");
HOMING_EXPORT int homing_own_sigaction(int signal, const struct sigaction* action,
                                       struct sigaction* old) noexcept __asm__("__sigaction");
HOMING_EXPORT int homing_own_sigsuspend(const sigset_t* mask) __asm__("__sigsuspend");

int homing_sigblock(int mask) noexcept {
    static constinit Real<int(int)> real{"sigblock"};
    if (is_librarys()) return early(real, mask);
    const sigset_t set = set_of(mask);
    return change_mask(SIG_BLOCK, &set);
}
int homing_sigsetmask(int mask) noexcept {
    static constinit Real<int(int)> real{"sigsetmask"};
    if (is_librarys()) return early(real, mask);
    const sigset_t set = set_of(mask);
    return change_mask(SIG_SETMASK, &set);
}
int homing_siggetmask() noexcept {
    static constinit Real<int()> real{"siggetmask"};
    return is_librarys() ? early(real) : change_mask(SIG_BLOCK, nullptr);
}
int homing_sighold(int signal) noexcept {
    static constinit Real<int(int)> real{"sighold"};
    return is_librarys() ? early(real, signal) : change_one(SIG_BLOCK, signal);
}
int homing_sigrelse(int signal) noexcept {
    static constinit Real<int(int)> real{"sigrelse"};
    return is_librarys() ? early(real, signal) : change_one(SIG_UNBLOCK, signal);
}
int homing_sigignore(int signal) noexcept {
    static constinit Real<int(int)> real{"sigignore"};
    return is_librarys() ? early(real, signal) : install(signal, SIG_IGN, nullptr);
}

sighandler_t homing_sigset(int signal, sighandler_t function) noexcept {
    static constinit Real<sighandler_t(int, sighandler_t)> real{"sigset"};
    if (is_librarys()) return early(real, signal, function);
    if (function == SIG_ERR || signal < 1 || signal >= NSIG) {
        errno = EINVAL;
        return SIG_ERR;
    }
    struct sigaction action = {};
    sigset_t before;
    if (function == SIG_HOLD) {
        if (change_one(SIG_BLOCK, signal, &before) != 0) return SIG_ERR;
        if (::sigismember(&before, signal) == 1) return SIG_HOLD;
        return ::sigaction(signal, nullptr, &action) == 0 ? action.sa_handler : SIG_ERR;
    }
    if (install(signal, function, &action) != 0 || change_one(SIG_UNBLOCK, signal, &before) != 0)
        return SIG_ERR;
    return ::sigismember(&before, signal) == 1 ? SIG_HOLD : action.sa_handler;
}

int homing_sigpause(int mask) {
    static constinit Real<int(int)> real{"sigpause"};
    return is_librarys() ? early(real, mask) : wait_with(mask);
}
int homing_xpg_sigpause(int signal) {
    static constinit Real<int(int)> real{"__xpg_sigpause"};
    return is_librarys() ? early(real, signal) : wait_without(signal);
}
int homing_own_sigpause(int value, int is_signal) {
    static constinit Real<int(int, int)> real{"__sigpause"};
    if (is_librarys()) return early(real, value, is_signal);
    return is_signal ? wait_without(value) : wait_with(value);
}
int homing_own_sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
    static constinit Real<int(int, const struct sigaction*, struct sigaction*)> real{"__sigaction"};
    return is_librarys() ? early(real, signal, action, old) : ::sigaction(signal, action, old);
}
int homing_own_sigsuspend(const sigset_t* mask) {
    static constinit Real<int(const sigset_t*)> real{"__sigsuspend"};
    return is_librarys() ? early(real, mask) : ::sigsuspend(mask);
}

} // extern "C"
