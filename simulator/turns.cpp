#include "turns.hpp"

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "hooks/export.hpp"
#include "machine/simulation.hpp"
#include "model.hpp"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <linux/futex.h>
#include <mutex>
#include <sched.h>
#include <sys/stat.h>

namespace homing::simulator {
namespace {

constinit std::mutex turning;
constinit Thread* holder = nullptr; ///< whose turn it is; under `turning`
/// Of the threads that wait, the one that looks again and again whether the holder fell asleep. One is
/// enough: dozens that look disturb each other more than they help.
constinit std::atomic<Thread*> watcher{nullptr};

/// Does a thread of this process sleep in the kernel? One that is gone does.
bool sleeps(int system_id) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", system_id);
    char text[256];
    const int descriptor = raw::open(path, O_RDONLY);
    if (descriptor < 0) return true;
    const long got = raw::read_at(descriptor, text, sizeof text - 1, 0);
    raw::close(descriptor);
    if (got <= 0) return true;
    text[got] = 0;
    const char* end = std::strrchr(text, ')'); // the name may hold anything
    return end && (end[2] == 'S' || end[2] == 'Z' || end[2] == 'X');
}

/// Threads of this process that never made an access; counted in `asleep`.
bool strangers_sleep(int& asleep) noexcept {
    struct stat tasks{};
    if (::stat("/proc/self/task", &tasks) != 0) return true;
    int known = 0;
    for (int id = 0; id < thread_count(); ++id)
        known += thread(id).alive;
    if (static_cast<int>(tasks.st_nlink) - 2 <= known) return true;
    bool all = true;
    DIR* folder = ::opendir("/proc/self/task");
    if (!folder) return true;
    for (const dirent* entry = ::readdir(folder); entry && all; entry = ::readdir(folder)) {
        const int system_id = std::atoi(entry->d_name);
        bool stranger = system_id > 0;
        for (int id = 0; id < thread_count() && stranger; ++id)
            stranger = thread(id).system_id != system_id || !thread(id).alive;
        if (!stranger) continue;
        ++asleep;
        all = sleeps(system_id);
    }
    ::closedir(folder);
    return all;
}

/// Seconds without an access after which a running thread counts as waiting. Libraries, which are not
/// instrumented, may work for as long; nearly always they take less.
constexpr double patience = 0.2;
/// Nobody looked for so long: what was seen before says nothing.
constexpr double stale = 0.1;
constinit std::atomic<bool> cut{false};

/// Has a thread that neither sleeps nor waits for its turn made no access for a while? Called with `turning`
/// held. Its count is read while it runs: an access in this moment is seen the next time.
bool stands_still(Thread& one) noexcept {
    const double now = monotonic_seconds();
    Stillness& still = one.still;
    const std::int64_t left = __atomic_load_n(&one.context.left, __ATOMIC_RELAXED);
    if (left != still.left || now - still.looked > stale) still = {left, now, now};
    still.looked = now;
    return now - still.since >= patience;
}

bool waits(const Thread& one) noexcept { return __atomic_load_n(&one.waits_for_turn, __ATOMIC_ACQUIRE) != 0; }

/// Tasks of the computer that run, or wait for a CPU; 0 where that is not known.
int runnable_tasks() noexcept {
    char text[128];
    if (raw::read_file("/proc/loadavg", text, sizeof text) <= 0) return 0;
    const char* at = text; // three averages before it
    for (int blanks = 0; blanks < 3 && at; ++blanks)
        at = std::strchr(at, ' ') ? std::strchr(at, ' ') + 1 : nullptr;
    return at ? std::atoi(at) : 0;
}

/// Does nobody on the whole computer run but the caller? Then all threads of this process sleep: one look for
/// all of them, where there are many. A thread that was woken on another CPU is counted only when that CPU
/// has heard of it, so there is a second look.
bool alone_on_the_computer() noexcept {
    if (runnable_tasks() != 1) return false;
    constexpr double a_moment = 5e-6;
    for (const double begin = monotonic_seconds(); monotonic_seconds() - begin < a_moment;) {
    }
    return runnable_tasks() == 1;
}

/// Every thread is where it will stay until somebody acts. A thread that sleeps must sleep twice: on its way
/// through a contended lock of a library it does so for a moment.
bool all_quiet() noexcept {
    if (alone_on_the_computer()) return true;
    for (int look = 0; look < 2; ++look) {
        int asleep = 0;
        for (int id = 0; id < thread_count(); ++id) {
            Thread& one = thread(id);
            if (!one.alive || waits(one)) continue;
            ++asleep;
            if (!sleeps(one.system_id) && !stands_still(one)) return false;
        }
        if (!strangers_sleep(asleep)) return false;
        if (asleep == 0) return true;
        const timespec moment{0, 30'000};
        raw::call(SYS_nanosleep, &moment, nullptr);
    }
    return true;
}

/// The waiting thread whose number follows. Called with `turning` held.
Thread* next_after(const Thread* last) noexcept {
    Thread* best = nullptr;
    const auto behind = [&](const Thread& one) { // how far it stands behind the last one, round and round
        const std::uint64_t at = one.order;
        const std::uint64_t from = last ? last->order : ~std::uint64_t{0};
        return at - from - 1;
    };
    for (int id = 0; id < thread_count(); ++id) {
        Thread& one = thread(id);
        if (one.alive && waits(one) && (!best || behind(one) < behind(*best))) best = &one;
    }
    return best;
}

void wake(Thread& one) noexcept {
    raw::call(SYS_futex, &one.waits_for_turn, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

/// `next` has the turn, by the hand of `caller`, who waits. It watches no longer; somebody must.
void give_turn(Thread& next, Thread& caller) noexcept {
    holder = &next;
    Thread* const watching = watcher.load(std::memory_order_relaxed);
    __atomic_store_n(&next.waits_for_turn, 0, __ATOMIC_RELEASE);
    if (watching && watching != &next) return wake(next);
    Thread* const other = &next != &caller ? &caller : next_after(&next);
    watcher.store(other, std::memory_order_release);
    if (other && other != &caller) wake(*other); // to find that it is the one
    wake(next);
}

/// Who had the turn, and how many accesses were left of it, when a waiting thread looked last.
struct Seen {
    const Thread* holder = nullptr;
    std::int64_t left = 0;
};

/// Give the turn on, if the one who has it is done with it.
void pass_on(Thread& caller, Seen& seen) noexcept {
    // Never sleep for it: a thread that is given the turn meanwhile would seem to be done with it.
    const std::unique_lock lock(turning, std::try_to_lock);
    if (!lock.owns_lock()) return;
    if (holder && holder->alive && !waits(*holder)) {
        // Who makes accesses does not sleep. Looked at first: it costs nothing.
        const Seen now{holder, __atomic_load_n(&holder->context.left, __ATOMIC_RELAXED)};
        if (seen.holder != now.holder || seen.left != now.left) {
            seen = now;
            return;
        }
        if (!sleeps(holder->system_id)) {
            if (!stands_still(*holder)) return;
            cut.store(true, std::memory_order_relaxed);
        }
    }
    if (!all_quiet()) return;
    Thread* next = next_after(holder);
    if (!next) return;
    if (holder && !waits(*holder) && holder->context.left > 0) {
        // It sleeps, or stands still, in the middle of its turn: what it did not use is gone, or it would run
        // beside others later.
        holder->granted -= holder->context.left;
        holder->context.left = 0;
        holder->still.left = 0;
    }
    give_turn(*next, caller);
}

/// Is it the caller that watches? It is where nobody does.
bool watches(Thread& caller) noexcept {
    Thread* nobody = nullptr;
    return watcher.load(std::memory_order_acquire) == &caller ||
           watcher.compare_exchange_strong(nobody, &caller);
}

} // namespace

void take_turn(Thread& one) noexcept {
    if (!one.alive) return; // turns are given to living threads only
    __atomic_store_n(&one.waits_for_turn, 1, __ATOMIC_RELEASE);
    Seen seen;
    int tries = 0;
    while (waits(one)) {
        const Thread* const before = seen.holder;
        pass_on(one, seen);
        if (!waits(one)) break;
        tries = seen.holder == before ? tries + 1 : 0;
        const timespec soon{0, !watches(one) ? 20'000'000 : tries < 100 ? 50'000 : 1'000'000};
        raw::call(SYS_futex, &one.waits_for_turn, FUTEX_WAIT_PRIVATE, 1, &soon, nullptr, 0);
    }
    Thread* self = &one;
    watcher.compare_exchange_strong(self, nullptr);
}

bool turn_instead_of_yield() noexcept {
    if (!simulation() || described().turn == 0 || is_inside()) return false;
    Thread* one = current_thread();
    if (one) take_turn(*one);
    return one != nullptr;
}

bool turns_were_cut() noexcept { return cut.load(std::memory_order_relaxed); }

void turn_before_work() noexcept {
    if (!simulation() || described().turn == 0 || is_inside()) return;
    Thread* one = attach(); // it may come for work before its first access
    if (one && __atomic_load_n(&holder, __ATOMIC_ACQUIRE) != one) take_turn(*one);
}

} // namespace homing::simulator

// Work that libgomp gives to whoever comes first.
#define HOMING_FIRST_COME(result, name, parameters, arguments)                                               \
    HOMING_EXPORT result name parameters {                                                                   \
        static constinit homing::hooks::Real<result parameters> real{#name};                                 \
        homing::simulator::turn_before_work();                                                               \
        return real arguments;                                                                               \
    }
#define HOMING_LOOP(kind)                                                                                    \
    HOMING_FIRST_COME(bool, GOMP_loop_##kind##_start, (long a, long b, long c, long d, long* e, long* f),    \
                      (a, b, c, d, e, f))                                                                    \
    HOMING_FIRST_COME(bool, GOMP_loop_##kind##_next, (long* a, long* b), (a, b))

extern "C" {
HOMING_LOOP(dynamic)
HOMING_LOOP(guided)
HOMING_LOOP(nonmonotonic_dynamic)
HOMING_LOOP(nonmonotonic_guided)
HOMING_FIRST_COME(bool, GOMP_single_start, (), ())
HOMING_FIRST_COME(unsigned, GOMP_sections_start, (unsigned count), (count))
HOMING_FIRST_COME(unsigned, GOMP_sections_next, (), ())
HOMING_FIRST_COME(void, GOMP_critical_start, (), ())
HOMING_FIRST_COME(void, GOMP_atomic_start, (), ())

HOMING_EXPORT int sched_yield() noexcept {
    static constinit homing::hooks::Real<int()> real{"sched_yield"};
    return homing::simulator::turn_instead_of_yield() ? 0 : real();
}
} // extern "C"
