#include "base/helper_thread.hpp"

#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "base/uncancelled.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/prctl.h>

namespace homing {
namespace {

constexpr std::size_t stack_bytes = std::size_t{512} << 10;

/// Signals by number, as rt_sigprocmask(2) has them.
using SignalSet = std::uint64_t;
constexpr SignalSet set_of(int signal) noexcept { return SignalSet{1} << (signal - 1); }
/// Faults, and the two that the C library keeps for itself.
constexpr SignalSet let_through = set_of(SIGSEGV) | set_of(SIGBUS) | set_of(SIGFPE) | set_of(SIGILL) |
                                  set_of(SIGTRAP) | set_of(SIGSYS) | set_of(32) | set_of(33);

timespec time_of(double seconds) noexcept {
    timespec time{};
    time.tv_sec = static_cast<std::time_t>(seconds);
    time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
    return time;
}

constinit std::atomic<int> our_threads[4] = {};

void replace(int thread, int by) noexcept {
    for (std::atomic<int>& one : our_threads) {
        int expected = thread;
        if (one.compare_exchange_strong(expected, by)) return;
    }
}

} // namespace

bool HelperThread::is_ours(int thread) noexcept {
    return thread != 0 && std::ranges::any_of(our_threads, [=](const std::atomic<int>& one) {
               return one.load(std::memory_order_relaxed) == thread;
           });
}

std::size_t HelperThread::count() noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        our_threads, [](const std::atomic<int>& one) { return one.load(std::memory_order_relaxed) != 0; }));
}

bool HelperThread::start(Work work, void* self, double seconds) noexcept {
    const int state = state_.load(std::memory_order_acquire);
    if (state == running) return true;
    if (state == never) return false;
    if (state == ended) join();
    work_ = work;
    self_ = self;
    seconds_ = seconds;
    stopping_.store(0, std::memory_order_relaxed);
    state_.store(running, std::memory_order_release);
    if (make()) return true;
    state_.store(never, std::memory_order_release);
    return false;
}

bool HelperThread::make() noexcept {
    pthread_attr_t attributes;
    if (::pthread_attr_init(&attributes) != 0) return false;
    ::pthread_attr_setstacksize(&attributes, stack_bytes);
    // It inherits what is blocked while it is made. Not by pthread_sigmask, which is the program's.
    const SignalSet blocked = ~let_through;
    SignalSet before = 0;
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, &before, sizeof blocked);
    int error = ::pthread_create(&thread_, &attributes, main, this);
    // Too small, where there is much thread-local memory: the usual one then.
    if (error == EINVAL) error = ::pthread_create(&thread_, nullptr, main, this);
    raw::call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
    ::pthread_attr_destroy(&attributes);
    return error == 0;
}

void* HelperThread::main(void* self) noexcept {
    auto& helper = *static_cast<HelperThread*>(self);
    const Inside inside;
    const Uncancelled uncancelled;
    helper.id_.store(static_cast<int>(raw::call(SYS_gettid)), std::memory_order_release);
    replace(0, helper.id());
    raw::call(SYS_prctl, PR_SET_NAME, "homing", 0, 0, 0);
    for (double seconds = helper.seconds_; seconds >= 0 && helper.sleep(seconds);)
        seconds = helper.work_(helper.self_);
    replace(helper.id(), 0);
    helper.id_.store(0, std::memory_order_release);
    int expected = running;
    helper.state_.compare_exchange_strong(expected, ended, std::memory_order_acq_rel);
    return nullptr;
}

/// False: it is to end.
bool HelperThread::sleep(double seconds) noexcept {
    const timespec time = time_of(seconds);
    if (!stopping_.load(std::memory_order_acquire))
        raw::call(SYS_futex, &stopping_, FUTEX_WAIT_PRIVATE, 0, &time);
    return !stopping_.load(std::memory_order_acquire);
}

void HelperThread::stop() noexcept {
    stopping_.store(1, std::memory_order_release);
    raw::call(SYS_futex, &stopping_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void HelperThread::join() noexcept { ::pthread_join(thread_, nullptr); }

void HelperThread::stop_and_wait() noexcept {
    constexpr int most_naps = 2000;
    const int state = state_.load(std::memory_order_acquire);
    if (state != running && state != ended) return;
    stop();
    const timespec nap{0, 1'000'000};
    for (int naps = 0; is_running() && naps < most_naps; ++naps)
        raw::call(SYS_nanosleep, &nap, nullptr);
    if (is_running()) return;
    join();
    state_.store(never, std::memory_order_release);
}

} // namespace homing
