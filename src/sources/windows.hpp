// References by windows: a bounded sample of pages is protected, and the first touch of each is counted by a
// signal handler. Works on every kernel, without rights; guarded, because a protected page breaks system
// calls that read or write it. (Löf et al. 2004 arm pages so to migrate at the next touch; a window only
// looks.)
//
// A window opens before a parallel region. A granule stays armed until somebody touches it: through the
// region, the serial code behind it and the regions that follow; the driver adds more at any region. Where
// serial code may do what no guard sees, the engine closes the window with its region
// (hooks/syscalls/own_calls).
//
// Guards, and where each is:
//  - a program that makes system calls past the C library, or has a SIGSEGV handler of its own, has windows
//  in parallel regions only (hooks/syscalls/own_calls, engine);
//  - memory that a running system call uses is left out, and taken out where the call begins later
//  (sources/in_flight, hooks/syscalls/calls*);
//  - memory that is freed, moved or unmapped leaves the window first (hooks/allocator/heap), lock-free;
//  - an eighth of the mappings that a process may have is left to the program;
//  - a fault that is not ours closes the window and goes to the program's own handler
//  (hooks/signals/signals);
//  - SIGSEGV is never blocked while homing works, and alternate stacks are never protected
//  (hooks/signals/signals);
//  - MPI, RDMA, io_uring and GPU libraries pin or write pages from outside: no windows then (unavailable()).
#pragma once

#include "base/asymmetric_fence.hpp"
#include "sources/armed_filter.hpp"
#include "sources/in_flight.hpp"
#include "sources/references.hpp"

#include <atomic>
#include <functional>

namespace homing {

/// What a touch of an armed granule does besides being counted: next touch moves it, a window only looks.
using TouchAction = void (*)(Range granule, int node) noexcept;

class Windows final : public ReferenceSource {
  public:
    /// Granules armed at one time at the most.
    static constexpr std::size_t usual_capacity = 8192;
    /// For a described machine, whose page table is ours.
    static constexpr std::size_t most_capacity = std::size_t{1} << 19;

    /// capacity: granules that are armed at one time, up to most_capacity.
    explicit Windows(Kernel& kernel, std::size_t capacity = usual_capacity) noexcept
        : kernel_(kernel), capacity_(capacity) {}
    ~Windows() override;

    const char* name() const noexcept override { return "windows"; }
    std::string unavailable() override;
    bool start(std::span<const WatchedRange> ranges) override;
    void stop() override;
    /// [driver] Touches since the last time. What is armed stays so.
    void drain(std::vector<Reference>& out) override;
    std::size_t capacity() const noexcept { return capacity_; }

    /// Arm these granules (ascending, disjoint, page-aligned, inside the watched ranges), beside those that
    /// are armed already. Called by the driver before the team starts. `still_there` is asked once, when the
    /// granules can be released: false means that some of the memory may have gone since they were chosen.
    /// Returns how many are armed that were not before: 0 where a guard forbids it. A touch that was not
    /// drained yet may be lost where its granule is armed again.
    std::size_t open(std::span<const Range> granules, const std::function<bool()>& still_there) noexcept;
    /// Disarm what was not touched. Called by the driver.
    void close() noexcept;
    /// Differs whenever granules were armed.
    std::uint32_t sequence() const noexcept { return sequence_.load(std::memory_order_acquire); }
    bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
    /// [driver] Granules that are armed now, and is this one of them?
    std::size_t armed() const noexcept { return standing_.load(std::memory_order_relaxed); }
    bool is_armed(Address address) noexcept;

    /// [signal] What a fault at `address` is: a touch; or of a granule that another thread is opening just
    /// now; or of one of this window that is open by now; or of no page of this window. The last two may have
    /// been ours when they happened: then the access is possible now.
    enum class Verdict { counted, retry, late, foreign };
    /// `own`: the access is homing's own, which says nothing.
    Verdict fault(Address address, bool write, Address instruction = 0, bool own = false) noexcept;

    /// [signal] A fault at `address` keeps coming back: whoever claimed the granule was held up before it
    /// could open it (mprotect waits for whoever reads /proc/self/maps). False: nobody has it claimed.
    bool open_again(Address address) noexcept;

    /// [any thread] Memory is about to go away, or to be used by a system call. When it returns, everybody
    /// can access the range and no thread is about to change its protection. It waits for those who do just
    /// now, but not for ever where it may have interrupted one of them.
    void release(Range range) noexcept;
    /// The same of a block that has fewer than ArmedFilter::most_pages, whose end was told before an
    /// asymmetric fence (BlockCover::remove): most have no page that is armed.
    void release_small(Range block) noexcept {
        if (filter_.may_hold(block)) release(block);
    }
    /// [any thread, signal] Everything back to normal now; the window counts as cut short.
    void abandon() noexcept;
    /// [signal] abandon() because of a fault that is not ours. A program that takes so many of its own that
    /// they end window after window has no windows any more.
    void cut_short() noexcept;
    /// [any thread, signal] No page is taken away, nor will be before sequence() changes.
    bool is_quiet() const noexcept { return !is_open() && users_.load(std::memory_order_seq_cst) == 0; }
    /// abandon(), and wait for what other threads are opening just now.
    void abandon_and_wait() noexcept;

    /// [any thread, signal] A call of the program begins, which has added what it uses: until it ends no page
    /// of that is armed.
    static void begin(InFlight call) noexcept;
    /// The same for a call whose memory the C library touches itself before it gives it to the kernel: a page
    /// that is armed by now may stay so.
    static void begin_touching() noexcept;

    /// Memory that must never be armed (an alternate signal stack).
    void exclude(Range range) noexcept;
    /// The program changes this memory itself (mprotect, munmap): where it is watched, hands off from now on.
    void exclude_if_watched(Range range) noexcept;

    /// Windows are over for good in this process, with the reason (the first one counts). Lock-free.
    void forbid(const char* reason) noexcept;
    const char* forbidden() const noexcept { return forbidden_.load(std::memory_order_acquire); }

    void set_touch_action(TouchAction action) noexcept { action_.store(action, std::memory_order_release); }
    std::uint64_t touches() const noexcept { return touches_.load(std::memory_order_relaxed); }
    /// [driver] Does the process have the mappings still that are the program's to have?
    bool leaves_mappings() noexcept;

    /// What windows took so far. Seconds are processor time of whoever paid them.
    struct Costs {
        std::uint64_t armed = 0;      ///< granules
        std::uint64_t arm_calls = 0;  ///< mprotect calls that armed them
        std::uint64_t back_calls = 0; ///< and that gave back what nobody had touched
        std::uint64_t touches = 0;    ///< each with a call of its own
        std::uint64_t faults = 0;     ///< these, and those of threads that came while another one opened it
        double arm_seconds = 0;
        double back_seconds = 0;
        std::uint64_t timed_touches = 0; ///< some of them
        double touch_seconds = 0;        ///< in our handler, of those
    };
    Costs costs() const noexcept;
    void forget_costs() noexcept;

  private:
    /// planned -> changing -> armed -> changing -> seen or released; planned -> released where memory goes
    /// before it was armed; seen -> released when its touch was drained. Only the thread that made a granule
    /// `changing` calls mprotect for it, and memory does not go away until it is done (release).
    enum State : std::uint8_t { planned, changing, is_protected, seen, released };
    struct Slot {
        Range granule;
        std::atomic<std::uint8_t> state{released};

        bool pass(State from, State to) noexcept {
            std::uint8_t expected = from;
            return state.compare_exchange_strong(expected, to, std::memory_order_seq_cst);
        }
        std::int16_t node = -1;
        bool write = false;
        std::int32_t thread = 0;
        Address touched = 0; ///< the byte
        Address instruction = 0;
    };
    /// The slots in use, ascending by address. There are two: readers (any thread, under users_) see the one
    /// that is published, the driver builds the other one. It publishes that, and does not write to what was
    /// published before, nor use its slots anew, until it has seen that there was no reader since.
    struct Order {
        struct Place {
            Address begin;
            std::uint32_t slot;
        };
        std::size_t count = 0;
        Place* places = nullptr;
        /// Finds most places by the first page of their granule: page number << 20 | place + 1, 0 where
        /// empty. A search through the places would cost each thread some remote lines, in somebody else's
        /// program.
        std::uint64_t* index = nullptr;
        std::size_t index_size = 0; ///< a power of two
    };
    const Order& order() const noexcept { return *order_.load(std::memory_order_seq_cst); }
    Slot& slot(const Order& order, std::size_t place) noexcept { return slots_[order.places[place].slot]; }
    /// An armed granule is claimed by whoever gives it back.
    bool claim(Slot& slot) noexcept {
        if (!slot.pass(is_protected, changing)) return false;
        standing_.fetch_sub(1, std::memory_order_relaxed);
        return true;
    }
    /// Calls visit(Slot&) for those that overlap the range.
    template <class Visit> void each_overlapping(Range range, Visit&& visit) noexcept;
    std::size_t slot_count() const noexcept { return 2 * capacity_; } ///< some wait to be free
    bool map_memory() noexcept;
    Slot* find(Address address) noexcept;
    static void index(Order& order) noexcept;
    const Order& build(std::span<const Range> granules) noexcept;
    void drop(std::uint32_t slot) noexcept { dropped_[dropped_count_++] = slot; }
    bool leave_out_what_is_in_flight() noexcept;
    void give_way(InFlight call) noexcept;
    void stop_arming() noexcept;
    void count_mappings() noexcept;
    std::size_t arm() noexcept;
    void refused(std::size_t first, std::size_t end, int error) noexcept;
    bool leave_out_unfit(std::size_t first, std::size_t end) noexcept;
    void add_excluded(Range range) noexcept;
    void disarm() noexcept;
    bool excludes(Range granule) const noexcept;
    bool wait_for_changes(bool interrupted) noexcept;
    void unprotect(Range range) noexcept;
    bool watches(Address begin, Address end) const noexcept;

    Kernel& kernel_;
    std::size_t capacity_;
    Slot* slots_ = nullptr; ///< own mappings: no allocator in a handler
    Order orders_[2];
    std::atomic<const Order*> order_{&nothing};
    static const Order nothing;
    ArmedFilter filter_; ///< of what the order has
    // Of slots, driver's: those that nobody can reach, and those that were reached through the last order.
    std::uint32_t* free_ = nullptr;
    std::size_t free_count_ = 0;
    std::uint32_t* dropped_ = nullptr;
    std::size_t dropped_count_ = 0;
    std::atomic<bool> open_{false};
    std::atomic<std::uint32_t> sequence_{0};
    std::atomic<bool> arming_{false}; ///< open() is at work
    std::atomic<int> cuts_{0};        ///< windows that faults of the program's have ended
    std::atomic<bool> stuck_{false};  ///< somebody uses slots for ever: no windows, and no waiting, any more
    std::atomic<const char*> forbidden_{nullptr};
    std::atomic<TouchAction> action_{nullptr};
    std::size_t spare_mappings_ = 0; ///< that what is armed may cost
    double next_count_ = 0;          ///< when mappings are counted again
    Address first_to_arm_ = 0;       ///< the next time, where not all had room in the last one
    int refused_ = 0;                ///< calls in turn by which nothing could be armed

    struct SharedRange {
        std::atomic<Address> begin{0};
        std::atomic<Address> end{0};

        Range load() const noexcept {
            return {begin.load(std::memory_order_relaxed), end.load(std::memory_order_relaxed)};
        }
    };
    static constexpr std::size_t max_watched = 16384;
    SharedRange* watched_ = nullptr; ///< ascending; own mapping, read by any thread under watched_sequence_
    std::atomic<std::size_t> watched_count_{0};
    std::atomic<std::uint32_t> watched_sequence_{0};

    static constexpr int max_excluded = 512;
    Range excluded_[max_excluded];
    std::atomic<int> excluded_claimed_{0};
    std::atomic<int> excluded_count_{0};

    // What every fault writes, in one cache line of its own.
    alignas(64) std::atomic<int> users_{
        0};                                ///< threads that use slots just now, or change what they stand for
    std::atomic<std::size_t> standing_{0}; ///< granules that are armed
    std::atomic<std::uint64_t> touches_{0};
    std::atomic<std::uint64_t> all_faults_{0}; ///< of ours
    std::atomic<std::uint64_t> timed_touches_{0};
    std::atomic<std::uint64_t> touch_nanoseconds_{0};
    // What arming and giving back took.
    alignas(64) std::atomic<std::uint64_t> armed_{0};
    std::atomic<std::uint64_t> arm_calls_{0};
    std::atomic<std::uint64_t> arm_nanoseconds_{0};
    std::atomic<std::uint64_t> back_calls_{0};
    std::atomic<std::uint64_t> back_nanoseconds_{0};
};

/// The windows of this process that hooks and handlers reach; null where homing does not use any.
extern std::atomic<Windows*> active_windows;
/// Those of which a page may be armed just now; null: none is.
extern std::atomic<Windows*> armed_windows;

inline void Windows::begin(InFlight call) noexcept {
    asymmetric_fence_light();
    if (Windows* armed = armed_windows.load(std::memory_order_acquire); __builtin_expect(armed != nullptr, 0))
        armed->give_way(call);
}

inline void Windows::begin_touching() noexcept {
    asymmetric_fence_light();
    if (Windows* armed = armed_windows.load(std::memory_order_acquire); __builtin_expect(armed != nullptr, 0))
        if (armed->arming_.load(std::memory_order_acquire)) armed->stop_arming();
}

} // namespace homing
