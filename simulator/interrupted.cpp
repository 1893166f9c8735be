#include "interrupted.hpp"

#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "base/uncancelled.hpp"
#include "engine/engine.hpp"
#include "machine/simulation.hpp"
#include "model.hpp"
#include "record/record.hpp"

#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <unistd.h>

namespace homing::simulator {

constinit std::atomic<int> signal_came{0};

namespace {

/// What ends a program from outside, in order.
constexpr int taken[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
/// Seconds until a process whose threads access nothing is ended all the same.
constexpr int patience = 2;

constinit std::atomic<bool> ending{false};
constinit std::atomic<long> process{0};
constinit std::atomic<bool> timers_made{false};
constinit int timers[std::size(taken)] = {}; ///< the kernel's numbers

/// The process ends by the signal when the thread next may take it: at once, outside the handler.
void default_action(int signal) noexcept {
    struct sigaction none = {};
    none.sa_handler = SIG_DFL;
    ::sigaction(signal, &none, nullptr);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, signal);
    raw::call(SYS_tgkill, raw::call(SYS_getpid), raw::call(SYS_gettid), signal);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

/// The signal comes (again) in so many seconds; 0: not at all.
void send_later(int signal, int seconds) noexcept {
    itimerspec later{};
    later.it_value.tv_sec = seconds;
    for (std::size_t i = 0; i < std::size(taken); ++i)
        if (taken[i] == signal && timers_made.load(std::memory_order_relaxed))
            raw::call(SYS_timer_settime, timers[i], 0, &later, nullptr);
}

void handle(int signal, siginfo_t*, void*) {
    const int saved = errno;
    int none = 0;
    // A child of fork is not simulated; a second signal means: at once.
    if (raw::call(SYS_getpid) != process.load(std::memory_order_relaxed) ||
        !signal_came.compare_exchange_strong(none, signal)) {
        default_action(signal);
    } else {
        forget_filters(); // so that the next access asks the model
        send_later(signal, patience);
    }
    errno = saved;
}

const char* name_of(int signal) noexcept {
    switch (signal) {
    case SIGHUP:
        return "SIGHUP";
    case SIGINT:
        return "SIGINT";
    case SIGQUIT:
        return "SIGQUIT";
    case SIGTERM:
        return "SIGTERM";
    default:
        return "SIGXCPU";
    }
}

} // namespace

void take_signals() noexcept {
    long none = 0;
    if (!process.compare_exchange_strong(none, raw::call(SYS_getpid))) return;
    bool made = true;
    for (std::size_t i = 0; i < std::size(taken); ++i) {
        sigevent event{};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = taken[i];
        made = raw::call(SYS_timer_create, CLOCK_MONOTONIC, &event, &timers[i]) == 0 && made;
    }
    timers_made.store(made, std::memory_order_relaxed);
    for (const int signal : taken) {
        struct sigaction now = {};
        if (::sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) ||
            now.sa_handler != SIG_DFL)
            continue;
        struct sigaction ours = {};
        ours.sa_sigaction = handle;
        ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        ::sigaction(signal, &ours, nullptr);
    }
}

void end_if_signalled() noexcept {
    if (signal_came.load() != 0 && !is_inside() &&
        raw::call(SYS_getpid) == process.load(std::memory_order_relaxed))
        end_by_signal();
}

void end_by_signal() noexcept {
    const int signal = signal_came.load();
    // One thread ends the process; the others count no more.
    if (ending.exchange(true))
        for (;;)
            ::pause();
    send_later(signal, 0); // what is written may take its time
    {
        const Inside inside;
        const Uncancelled uncancelled;
        record::fact("ended_by", name_of(signal));
        if (Simulation* simulated = simulation()) simulated->finish(engine());
    }
    default_action(signal);
    ::_exit(128 + signal); // it is blocked by force
}

} // namespace homing::simulator
