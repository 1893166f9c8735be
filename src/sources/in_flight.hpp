// Memory in flight: what the system calls that run just now read or write. The kernel gets EFAULT, or a short
// count, where it meets a page that a window has protected; so each call of the program that the hooks see
// says what memory it uses while it runs, whether or not that is watched: a block that a thread waits for
// data into may become a watched area in the middle of its call.
//
// Each thread has a record of its own, in which it writes without a lock, a fence or a system call. Who opens
// a window reads them all and leaves out what he finds; a call that begins while a window is open takes its
// memory out of it (Windows::give_way). One of the two always sees the other (base/asymmetric_fence.hpp).
//
// A call need not end here: a thread may be cancelled, or jump out of a signal's handler, in the middle. What
// it has left behind goes with the next call that it makes further up its stack, when it opens a window
// itself, or when it ends.
#pragma once

#include "base/pages.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace homing {

/// What a call uses that may read or write anything.
inline constexpr Range all_memory{0, ~Address{0}};

/// The calls of one thread. A cache line of its own, and three more for calls with many ranges.
struct alignas(64) ThreadCalls {
    struct Entry {
        std::atomic<Address> by{0}; ///< the call, as a place in its stack frame; 0: the entry is free
        std::atomic<Address> begin{0};
        std::atomic<Address> end{0};
    };
    static constexpr int most = 10;

    std::atomic<std::uint32_t> taken{0}; ///< by a thread
    std::atomic<std::uint16_t> used{0};  ///< entries that were in use once, from the first
    std::atomic<bool> several_stacks{false};
    Entry entries[most];
};

inline constinit thread_local ThreadCalls* own_calls = nullptr;

/// One call, from before it begins until it has ended: add() what it uses, Windows::begin(), the call, end().
/// No destructor on purpose: a cancelled thread unwinds through the caller, at any instruction. What it knows
/// fits into registers, and never leaves them but by value.
class InFlight {
  public:
    InFlight() noexcept : thread_(own_calls) {}
    /// None yet.
    constexpr explicit InFlight(std::nullptr_t) noexcept : thread_(nullptr) {}
    /// Exact for the first ranges; of very many the last ones are widened to one.
    [[gnu::always_inline]] void add(Range range) noexcept { // the frame is the caller's
        add(range, reinterpret_cast<Address>(__builtin_frame_address(0)));
    }
    /// For a call that ends in another function than it begins.
    [[gnu::always_inline]] void add_across_functions(Range range) noexcept { add(range, ~Address{0}); }
    /// For one of a child that shares this thread's memory until it is another program: it does not come back
    /// to end().
    [[gnu::always_inline]] void add_for_child(Range range) noexcept { add(range, by_child); }

    [[gnu::always_inline]] void end() noexcept {
        if (__builtin_expect(held_ == 1, 1))
            thread_->entries[0].by.store(0, std::memory_order_release);
        else if (held_)
            end_slowly(thread_, held_);
        held_ = 0;
    }
    /// Calls visit(Range) for what was added.
    template <class Visit> void each(Visit&& visit) const {
        if (held_ & crowded) return visit(all_memory);
        for (std::uint32_t left = held_; left; left &= left - 1) {
            const ThreadCalls::Entry& entry = thread_->entries[__builtin_ctz(left)];
            visit(Range{entry.begin.load(std::memory_order_relaxed),
                        entry.end.load(std::memory_order_relaxed)});
        }
    }

  private:
    /// Entries that a call holds, a bit each, or its place in the crowd.
    using Held = std::uint32_t;
    static constexpr Held crowded = Held{1} << 31;
    static constexpr Address by_child = 1;

    [[gnu::always_inline]] void add(Range range, Address by) noexcept {
        if (range.empty()) return;
        const int next = 32 - (held_ ? __builtin_clz(held_) : 32);
        if (__builtin_expect(thread_ && next < ThreadCalls::most &&
                                 thread_->entries[next].by.load(std::memory_order_relaxed) == 0,
                             1)) {
            put(*thread_, next, range, by);
            held_ |= Held{1} << next;
        } else {
            held_ = add_slowly(held_, range, by);
            thread_ = own_calls;
        }
    }
    [[gnu::always_inline]] static void put(ThreadCalls& calls, int at, Range range, Address by) noexcept {
        ThreadCalls::Entry& entry = calls.entries[at];
        // First: a signal's handler that comes in between takes another one.
        entry.by.store(by, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        entry.begin.store(range.begin, std::memory_order_relaxed);
        entry.end.store(range.end, std::memory_order_relaxed);
        if (__builtin_expect(calls.used.load(std::memory_order_relaxed) <= at, 0))
            calls.used.store(static_cast<std::uint16_t>(at + 1), std::memory_order_relaxed);
    }
    static Held add_slowly(Held held, Range range, Address by) noexcept;
    static void end_slowly(ThreadCalls* calls, Held held) noexcept;
    static void drop_stale(ThreadCalls& calls, Address by) noexcept;

    ThreadCalls* thread_;
    Held held_ = 0;
};

namespace in_flight {

/// At the start of the process: what ends with a thread.
void prepare() noexcept;
/// [driver] Calls visit(Range) -> bool for all memory in flight, until one answers false. False: one did.
/// Between this and what the caller wrote before lies asymmetric_fence_heavy().
template <class Visit> bool each(Visit&& visit);
/// [driver] This thread is in no call: it has just begun a region.
void forget_own() noexcept;
/// In the child of a fork: the other threads are not there.
void forget_others() noexcept;
/// No window opens any more, and no system call of ours may be made on behalf of a call: the program is about
/// to filter them.
void make_no_calls() noexcept;
bool makes_no_calls() noexcept;
/// This thread runs on stacks that it changes itself: which of two calls is the outer one cannot be told from
/// their addresses.
void has_several_stacks() noexcept;

// For each().
inline constexpr int most_threads = 4096;
extern constinit ThreadCalls threads[most_threads];
extern constinit std::atomic<int> threads_used; ///< from the first
extern constinit std::atomic<int> crowd;        ///< calls that found no place in a record

template <class Visit> bool each(Visit&& visit) {
    if (crowd.load(std::memory_order_acquire) > 0 && !visit(all_memory)) return false;
    const int count = threads_used.load(std::memory_order_acquire);
    for (int i = 0; i < count; ++i) {
        const ThreadCalls& calls = threads[i];
        const int used = calls.used.load(std::memory_order_acquire);
        for (int k = 0; k < used; ++k) {
            const ThreadCalls::Entry& entry = calls.entries[k];
            if (entry.by.load(std::memory_order_acquire) == 0) continue;
            // Of two calls, the older one's begin and the newer one's end: then the newer one sees the
            // window.
            const Range range{entry.begin.load(std::memory_order_relaxed),
                              entry.end.load(std::memory_order_relaxed)};
            if (!range.empty() && !visit(range)) return false;
        }
    }
    return true;
}

} // namespace in_flight
} // namespace homing
