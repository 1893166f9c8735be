#include "hooks/signals/masks.hpp"

#include "base/raw_calls.hpp"
#include "hooks/export.hpp"

#include <cerrno>
#include <cstring>
#include <pthread.h>

namespace homing::hooks {
namespace {

constinit std::atomic<bool> translates{false};
/// Where a mask that is not translated yet has the stand-in alone, that is the program's own: garbage
/// collectors block all signals but faults.
constinit std::atomic<bool> stand_in_was_taken{false};
constinit thread_local bool looked_here = false;

void look_here(Mask unfit) noexcept {
    if (looked_here || !translates_masks()) return;
    looked_here = true;
    Mask mask = 0;
    if (raw::call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &mask, sizeof mask) != 0 || !(mask & unfit))
        return;
    mask = for_kernel(mask);
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

template <class Function>
int mask_call(Function&& call, int how, const sigset_t* set, sigset_t* old) noexcept {
    if (!translates_masks()) return call(how, set, old);
    let_faults_through_here();
    GivenMask given{set};
    // One that was sent while it was blocked is blocked in the kernel, too (fault_handler.cpp).
    if (how == SIG_UNBLOCK && set && ::sigismember(set, SIGSEGV) == 1) ::sigaddset(given.get(), SIGSEGV);
    sigset_t before{};
    const int result = call(how, given.get(), old ? &before : nullptr);
    if (result == 0 && old) put_mask(*old, for_program(get_mask(before)));
    return result;
}

} // namespace

bool translates_masks() noexcept { return translates.load(std::memory_order_acquire); }
void translate_masks(bool stand_in_is_taken) noexcept {
    stand_in_was_taken.store(stand_in_is_taken, std::memory_order_relaxed);
    translates.store(true, std::memory_order_release);
}

void let_faults_through_here() noexcept {
    look_here(stand_in_was_taken.load(std::memory_order_relaxed) ? segv | stand_in : segv);
}

void let_faults_through_new_thread() noexcept { look_here(segv); }

bool blocks_for_program(Mask kernel) noexcept {
    return translates_masks() && (kernel & stand_in) &&
           (looked_here || !stand_in_was_taken.load(std::memory_order_relaxed));
}

void let_faults_through(sigset_t& interrupted) noexcept {
    if (looked_here || !translates_masks() || !stand_in_was_taken.load(std::memory_order_relaxed)) return;
    looked_here = true;
    put_mask(interrupted, for_kernel(get_mask(interrupted)));
}

long mask_call_by_number(const long* arguments) noexcept {
    const auto by_number = [](int how, const void* set, void* old, std::size_t bytes) {
        return raw::call(SYS_rt_sigprocmask, how, set, old, bytes);
    };
    const int how = static_cast<int>(arguments[0]);
    const auto* set = reinterpret_cast<const sigset_t*>(arguments[1]);
    auto* old = reinterpret_cast<sigset_t*>(arguments[2]);
    const auto bytes = static_cast<std::size_t>(arguments[3]);
    if (bytes != sizeof(Mask)) return by_number(how, set, old, bytes);
    return mask_call([&](int, const sigset_t* given,
                         sigset_t* before) { return static_cast<int>(by_number(how, given, before, bytes)); },
                     how, set, old);
}

MaskedWait::MaskedWait(long number, long* arguments) noexcept {
    switch (number) {
    case SYS_rt_sigsuspend:
        translate(arguments[0], arguments[1]);
        return;
    case SYS_ppoll:
        translate(arguments[3], arguments[4]);
        return;
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
        translate(arguments[4], arguments[5]);
        return;
    case SYS_pselect6:
        if (!translates_masks() || arguments[5] == 0) return;
        std::memcpy(&pair_, reinterpret_cast<const void*>(arguments[5]), sizeof pair_);
        translate(pair_.set, pair_.bytes);
        arguments[5] = reinterpret_cast<long>(&pair_);
        return;
    default:
        return;
    }
}

/// What is no mask is for the kernel to say.
void MaskedWait::translate(long& set, long bytes) noexcept {
    if (!translates_masks() || set == 0 || bytes != sizeof(Mask)) return;
    sigset_t programs{};
    std::memcpy(&programs, reinterpret_cast<const void*>(set), sizeof(Mask));
    given_ = GivenMask{&programs};
    set = reinterpret_cast<long>(given_.get());
}

} // namespace homing::hooks

using namespace homing::hooks;

extern "C" {

HOMING_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    static constinit Real<int(int, const sigset_t*, sigset_t*)> real{"pthread_sigmask"};
    return mask_call(real.get(), how, set, old);
}

HOMING_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    static constinit Real<int(int, const sigset_t*, sigset_t*)> real{"sigprocmask"};
    return mask_call(real.get(), how, set, old);
}

HOMING_EXPORT int sigsuspend(const sigset_t* mask) {
    static constinit Real<int(const sigset_t*)> real{"sigsuspend"};
    if (!translates_masks()) return real(mask);
    GivenMask given{mask};
    return real(given.get());
}

// The mask that a thread begins with.
HOMING_EXPORT int pthread_attr_setsigmask_np(pthread_attr_t* attribute, const sigset_t* mask) {
    static constinit Real<int(pthread_attr_t*, const sigset_t*)> real{"pthread_attr_setsigmask_np"};
    if (!real.get()) return ENOSYS;
    if (!translates_masks()) return real(attribute, mask);
    GivenMask given{mask};
    return real(attribute, given.get());
}

HOMING_EXPORT int pthread_attr_getsigmask_np(const pthread_attr_t* attribute, sigset_t* mask) {
    static constinit Real<int(const pthread_attr_t*, sigset_t*)> real{"pthread_attr_getsigmask_np"};
    const int result = real.get() ? real(attribute, mask) : ENOSYS;
    if (result == 0 && translates_masks()) put_mask(*mask, for_program(get_mask(*mask)));
    return result;
}

} // extern "C"
