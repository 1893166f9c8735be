#include "hooks/signals/kernel_actions.hpp"

#include "base/raw_calls.hpp"

#include <atomic>

namespace homing::hooks {
namespace {

constinit std::atomic<bool> asks_for_stack{false};

bool has_handler(const KernelAction& action) noexcept {
    return action.handler != reinterpret_cast<void*>(SIG_DFL) &&
           action.handler != reinterpret_cast<void*>(SIG_IGN);
}

/// The old one is what was replaced, which another thread may have installed just now.
bool replace_action(int signal, const KernelAction& action, KernelAction& old) noexcept {
    return raw::call(SYS_rt_sigaction, signal, &action, &old, sizeof(Mask)) == 0;
}

void let_faults_through(int signal, KernelAction found) noexcept {
    constexpr int most_tries = 16; // a thread that installs handlers all the time
    KernelAction replaced{};
    for (int tries = 0; tries < most_tries; ++tries) {
        KernelAction given = found;
        if (has_handler(found)) given.mask = for_kernel(found.mask);
        if (!replace_action(signal, given, replaced) || replaced == found) return;
        found = replaced; // the program's newest goes back, in the same way
    }
}

/// The C library's own, for cancelling threads and for setuid(): they run well on any stack, ours too, and
/// come with the first thread (glibc: SIGSETXID with SA_ONSTACK).
bool is_librarys(int signal) noexcept {
    constexpr int first = 32;
    return signal >= first && signal < SIGRTMIN;
}

} // namespace

bool read_action(int signal, KernelAction& action) noexcept {
    return raw::call(SYS_rt_sigaction, signal, nullptr, &action, sizeof(Mask)) == 0;
}

void let_faults_through_handlers(Mask caught) noexcept {
    // What is translated has the stand-in for SIGSEGV; before that, it is a signal of the program's.
    const Mask unfit = translates_masks() ? segv : segv | stand_in;
    bool asks = false;
    for (int signal = 1; signal < _NSIG; ++signal) {
        KernelAction action{};
        if (signal == SIGSEGV || !(caught & mask_of(signal)) || !read_action(signal, action) ||
            !has_handler(action))
            continue;
        asks |= (action.flags & SA_ONSTACK) != 0 && !is_librarys(signal);
        if (action.mask & unfit) let_faults_through(signal, action);
    }
    asks_for_stack.store(asks, std::memory_order_relaxed);
}

bool a_handler_asks_for_a_stack() noexcept { return asks_for_stack.load(std::memory_order_relaxed); }
void a_handler_has_asked_for_a_stack() noexcept { asks_for_stack.store(true, std::memory_order_relaxed); }

} // namespace homing::hooks
