#include "sources/in_flight.hpp"

#include "base/raw_calls.hpp"

#include <algorithm>
#include <csignal>
#include <pthread.h>

namespace homing {

namespace in_flight {

constinit ThreadCalls threads[most_threads];
constinit std::atomic<int> threads_used{0};
constinit std::atomic<int> crowd{0};

namespace {

constinit std::atomic<int> threads_taken{0};
constinit std::atomic<bool> has_key{false};
constinit pthread_key_t key{};
constinit std::atomic<bool> silent{false};

void clear(ThreadCalls& calls) noexcept {
    for (ThreadCalls::Entry& entry : calls.entries)
        entry.by.store(0, std::memory_order_release);
}

/// A thread ends. Destructors that run later may make calls: then it takes a record anew, and this runs
/// again.
void leave(void* record) noexcept {
    auto& calls = *static_cast<ThreadCalls*>(record);
    if (own_calls == &calls) own_calls = nullptr;
    clear(calls);
    calls.several_stacks.store(false, std::memory_order_relaxed);
    calls.taken.store(0, std::memory_order_release);
    threads_taken.fetch_sub(1, std::memory_order_relaxed);
}

/// The thread's first call. Null: there are too many threads.
ThreadCalls* take_record() noexcept {
    if (threads_taken.load(std::memory_order_relaxed) >= most_threads) return nullptr;
    for (int i = 0; i < most_threads; ++i) {
        std::uint32_t expected = 0;
        if (threads[i].taken.load(std::memory_order_relaxed) ||
            !threads[i].taken.compare_exchange_strong(expected, 1, std::memory_order_acq_rel))
            continue;
        threads_taken.fetch_add(1, std::memory_order_relaxed);
        int known = threads_used.load(std::memory_order_relaxed);
        while (known <= i && !threads_used.compare_exchange_weak(known, i + 1, std::memory_order_acq_rel)) {
        }
        if (own_calls) { // a signal's handler came in between
            threads[i].taken.store(0, std::memory_order_release);
            threads_taken.fetch_sub(1, std::memory_order_relaxed);
            return own_calls;
        }
        own_calls = &threads[i];
        if (has_key.load(std::memory_order_acquire)) ::pthread_setspecific(key, own_calls);
        return own_calls;
    }
    return nullptr;
}

/// Or perhaps.
bool on_alternate_stack() noexcept {
    if (silent.load(std::memory_order_relaxed)) return true;
    stack_t stack{};
    return raw::call(SYS_sigaltstack, nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK);
}

} // namespace

void prepare() noexcept {
    if (::pthread_key_create(&key, leave) == 0) has_key.store(true, std::memory_order_release);
}

void forget_own() noexcept {
    if (own_calls) clear(*own_calls);
}

void forget_others() noexcept {
    crowd.store(0, std::memory_order_relaxed);
    const int count = std::min(threads_used.load(std::memory_order_relaxed), most_threads);
    for (int i = 0; i < count; ++i) {
        if (&threads[i] == own_calls) continue;
        clear(threads[i]);
        threads[i].taken.store(0, std::memory_order_relaxed);
    }
    threads_taken.store(own_calls ? 1 : 0, std::memory_order_relaxed);
}

void make_no_calls() noexcept { silent.store(true, std::memory_order_relaxed); }
bool makes_no_calls() noexcept { return silent.load(std::memory_order_relaxed); }

void has_several_stacks() noexcept {
    if (ThreadCalls* calls = own_calls ? own_calls : take_record())
        calls->several_stacks.store(true, std::memory_order_relaxed);
}

} // namespace in_flight

/// What calls left behind that were jumped out of. A call that goes on while this one begins was interrupted
/// by a signal's handler, which makes this one: its frame lies further up the stack, unless the handler has a
/// stack of its own.
void InFlight::drop_stale(ThreadCalls& calls, Address here) noexcept {
    int on_alternate = -1;
    for (ThreadCalls::Entry& entry : calls.entries) {
        const Address by = entry.by.load(std::memory_order_relaxed);
        if (by == 0 || (by != by_child && by > here)) continue;
        if (by != by_child) {
            if (calls.several_stacks.load(std::memory_order_relaxed)) continue;
            if (on_alternate < 0) on_alternate = in_flight::on_alternate_stack();
            if (on_alternate) continue;
        }
        entry.by.store(0, std::memory_order_relaxed);
    }
}

InFlight::Held InFlight::add_slowly(Held held, Range range, Address by) noexcept {
    if (held & crowded) return held;
    ThreadCalls* calls = own_calls ? own_calls : in_flight::take_record();
    if (calls) {
        if (held == 0) drop_stale(*calls, by);
        for (int at = 0; at < ThreadCalls::most; ++at)
            if (calls->entries[at].by.load(std::memory_order_relaxed) == 0) {
                put(*calls, at, range, by);
                return held | Held{1} << at;
            }
        if (held) { // more ranges than there is room for
            ThreadCalls::Entry& last = calls->entries[31 - __builtin_clz(held)];
            last.begin.store(std::min(last.begin.load(std::memory_order_relaxed), range.begin),
                             std::memory_order_relaxed);
            last.end.store(std::max(last.end.load(std::memory_order_relaxed), range.end),
                           std::memory_order_relaxed);
            return held;
        }
    }
    in_flight::crowd.fetch_add(1, std::memory_order_seq_cst);
    return held | crowded;
}

void InFlight::end_slowly(ThreadCalls* calls, Held held) noexcept {
    for (Held left = held & ~crowded; left; left &= left - 1)
        calls->entries[__builtin_ctz(left)].by.store(0, std::memory_order_release);
    if (held & crowded) in_flight::crowd.fetch_sub(1, std::memory_order_release);
}

} // namespace homing
