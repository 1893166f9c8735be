// References by windows: a bounded sample of pages is protected during one parallel region, and the first
// touch of each is counted by a signal handler. Works on every kernel, without rights; guarded, because a
// protected page breaks system calls that read or write it. (Löf et al. 2004 arm pages so to migrate at the
// next touch; a window only looks.)
//
// Guards, and where each is:
//  - a window lives in one top-level parallel region only, and is closed before serial code runs (engine);
//  - input and output calls on watched memory close the window first, and none opens while one runs
//  (doors/guards);
//  - memory that is freed, moved or unmapped leaves the window first (doors/heap), lock-free;
//  - a fault that is not ours closes the window and goes to the program's own handler (doors/signals);
//  - SIGSEGV is never blocked while homing works, and alternate stacks are never protected (doors/signals);
//  - MPI, RDMA, io_uring and GPU libraries pin or write pages from outside: no windows then (unavailable()).
#pragma once

#include "references/references.hpp"

#include <atomic>
#include <functional>

namespace homing {

/// What a touch of an armed granule does besides being counted: next touch moves it, a window only looks.
using TouchAction = void (*)(Range granule, int node) noexcept;

class Windows final : public ReferenceSource {
  public:
    /// Granules armed at one time at the most: each isolated one costs two more mappings of max_map_count.
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
    void drain(std::vector<Reference>& out) override;
    std::uint64_t lost() const noexcept override { return refused_; }
    std::size_t capacity() const noexcept { return capacity_; }
    bool needs_plan() const noexcept override { return true; }

    /// Arm these granules (ascending, disjoint, page-aligned, inside the watched ranges). Called by the
    /// driver before the team starts. `still_there` is asked once, when the granules can be released:
    /// false means that some of the memory may have gone since they were chosen. Returns how many are armed:
    /// 0 where a guard forbids the window.
    std::size_t open(std::span<const Range> granules, const std::function<bool()>& still_there) noexcept;
    /// Disarm what was not touched. Called by the driver after the team has ended.
    void close() noexcept;
    /// Differs from window to window.
    std::uint32_t sequence() const noexcept { return building_.load(std::memory_order_acquire); }
    bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }

    /// [signal] What a fault at `address` is: a touch; or of a granule that another thread is opening just
    /// now; or not of ours. The last may have been ours when it happened: then the access is possible now.
    enum class Verdict { counted, retry, foreign };
    Verdict fault(Address address, bool write) noexcept;

    /// [signal] A fault at `address` keeps coming back: whoever claimed the granule was held up before it
    /// could open it (mprotect waits for whoever reads /proc/self/maps). False: nobody has it claimed.
    bool open_again(Address address) noexcept;

    /// [any thread] Memory is about to go away, or to be used by a system call. When it returns, everybody
    /// can access the range and no thread is about to change its protection. It waits for those who do just
    /// now, but not for ever where it may have interrupted one of them.
    void release(Range range) noexcept;
    /// [any thread, signal] Everything back to normal now; the window counts as cut short.
    void abandon() noexcept override;

    /// [any thread] A system call will use this memory: brackets it. begin returns whether end must be
    /// called.
    bool system_call_begin(const void* buffer, std::size_t bytes) noexcept;
    /// The same for a call whose memory is not known: the window ends.
    void system_call_begin() noexcept;
    /// abandon(), and wait for what other threads are opening just now.
    void abandon_and_wait() noexcept;
    void system_call_end() noexcept { system_calls_.fetch_sub(1, std::memory_order_seq_cst); }

    /// Memory that must never be armed (an alternate signal stack).
    void exclude(Range range) noexcept;
    /// The program changes this memory itself (mprotect, munmap): where it is watched, hands off from now on.
    void exclude_if_watched(Range range) noexcept;

    /// Windows are over for good in this process, with the reason (the first one counts). Lock-free.
    void forbid(const char* reason) noexcept;
    const char* forbidden() const noexcept { return forbidden_.load(std::memory_order_acquire); }

    void set_touch_action(TouchAction action) noexcept { action_.store(action, std::memory_order_release); }
    std::uint64_t faults() const noexcept { return faults_.load(std::memory_order_relaxed); }

  private:
    /// planned -> changing -> armed -> changing -> seen or released; planned -> released where memory goes
    /// before it was armed. Only the thread that made a granule `changing` calls mprotect for it, and memory
    /// does not go away until it is done (release).
    enum State : std::uint8_t { idle, planned, changing, armed, seen, released };
    struct Slot {
        Range granule;
        std::atomic<std::uint8_t> state{idle};

        bool pass(State from, State to) noexcept {
            std::uint8_t expected = from;
            return state.compare_exchange_strong(expected, to, std::memory_order_seq_cst);
        }
        std::int16_t node = -1;
        bool write = false;
    };
    Slot* find(Address address) noexcept;
    void index(std::size_t count) noexcept;
    void fill(std::span<const Range> granules) noexcept;
    std::size_t arm() noexcept;
    void disarm() noexcept;
    bool excludes(Range granule) const noexcept;
    bool wait_for_changes(bool interrupted) noexcept;
    void unprotect(Range range) noexcept;
    bool watches(Address begin, Address end) const noexcept;

    Kernel& kernel_;
    std::size_t capacity_;
    Slot* slots_ = nullptr; ///< own mapping: no allocator in a handler
    /// Finds most slots by the first page of their granule: page number << 20 | slot + 1, 0 where empty. A
    /// search through slots_ would cost each thread a remote line a step, in somebody else's program.
    std::uint64_t* index_ = nullptr;
    std::size_t index_size_ = 0; ///< a power of two
    std::atomic<std::size_t> count_{0};
    std::atomic<bool> open_{false};
    std::atomic<std::uint32_t> building_{0}; ///< odd while slots are being filled
    std::atomic<int> system_calls_{0};
    std::atomic<bool> stuck_{false}; ///< somebody uses slots for ever: no windows, and no waiting, any more
    std::atomic<const char*> forbidden_{nullptr};
    std::atomic<TouchAction> action_{nullptr};
    std::uint64_t refused_ = 0;

    static constexpr std::size_t max_watched = 16384;
    Range* watched_ = nullptr; ///< ascending; own mapping, read by any thread under watched_sequence_
    std::atomic<std::size_t> watched_count_{0};
    std::atomic<std::uint32_t> watched_sequence_{0};

    static constexpr int max_excluded = 512;
    Range excluded_[max_excluded];
    std::atomic<int> excluded_claimed_{0};
    std::atomic<int> excluded_count_{0};

    // What every fault writes, in one cache line of its own.
    alignas(64) std::atomic<int> users_{
        0}; ///< threads that use slots just now, or change what they stand for
    std::atomic<std::uint64_t> faults_{0};
};

/// The windows of this process that hooks and handlers reach; null where homing does not use any.
extern std::atomic<Windows*> active_windows;

} // namespace homing
