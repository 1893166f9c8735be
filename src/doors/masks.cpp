#include "doors/masks.hpp"

#include "doors/export.hpp"

#include <cerrno>
#include <pthread.h>

namespace homing::doors {
namespace {

constinit std::atomic<bool> translates{true};

/// A set of the program's as the kernel gets it. The copy is ours: in a watched array, the program's would be
/// a bad address to the kernel.
class Given {
  public:
    explicit Given(const sigset_t* set) noexcept : there_(set != nullptr) {
        if (set) put_mask(set_, translates_masks() ? for_kernel(get_mask(*set)) : get_mask(*set));
    }
    sigset_t* get() noexcept { return there_ ? &set_ : nullptr; }

  private:
    bool there_;
    sigset_t set_{};
};

template <class Function>
int mask_call(Function&& call, int how, const sigset_t* set, sigset_t* old) noexcept {
    Given given{set};
    // One that was sent while it was blocked is blocked in the kernel, too (signals.cpp).
    if (how == SIG_UNBLOCK && set && ::sigismember(set, SIGSEGV) == 1) ::sigaddset(given.get(), SIGSEGV);
    sigset_t before{};
    const int result = call(how, given.get(), old ? &before : nullptr);
    if (result == 0 && old)
        put_mask(*old, translates_masks() ? for_program(get_mask(before)) : get_mask(before));
    return result;
}

} // namespace

bool translates_masks() noexcept { return translates.load(std::memory_order_relaxed); }
void leave_masks_alone() noexcept { translates.store(false, std::memory_order_relaxed); }

} // namespace homing::doors

using namespace homing::doors;

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
    Given given{mask};
    return real(given.get());
}

// The mask that a thread begins with.
HOMING_EXPORT int pthread_attr_setsigmask_np(pthread_attr_t* attribute, const sigset_t* mask) {
    static constinit Real<int(pthread_attr_t*, const sigset_t*)> real{"pthread_attr_setsigmask_np"};
    Given given{mask};
    return real.get() ? real(attribute, given.get()) : ENOSYS;
}

HOMING_EXPORT int pthread_attr_getsigmask_np(const pthread_attr_t* attribute, sigset_t* mask) {
    static constinit Real<int(const pthread_attr_t*, sigset_t*)> real{"pthread_attr_getsigmask_np"};
    const int result = real.get() ? real(attribute, mask) : ENOSYS;
    if (result == 0 && translates_masks()) put_mask(*mask, for_program(get_mask(*mask)));
    return result;
}

} // extern "C"
