// Sampled page faults of the whole process, with the code that made them: what touches memory that does not
// exist yet faults, so these are first touches (the kernel's hint faults are told apart in
// touched_extents.hpp).
//
// Two software events of perf for each thread, which it opens itself as it begins: a team that fills an array
// as soon as it exists is seen from its first page on, and a thread costs the same on every machine. (Events
// that threads inherit can be mapped only where there is one for each CPU, and each new thread pays for all
// of them: measured for 128 threads, 31 us and 5 KiB a thread with 2 CPUs, 3.3 ms and 690 KiB with 256.)
// Nobody empties the rings before the thread ends: the fine event keeps the first of its samples, the coarse
// one reaches 64 times as far.
#pragma once

#include "base/raw_mutex.hpp"
#include "kernel/kernel.hpp"
#include "sources/ring.hpp"

#include <atomic>
#include <cstdint>
#include <list>
#include <vector>

namespace homing {

/// A page fault, and the faults that it stands for.
struct FaultSample {
    Address address = 0;
    Address instruction = 0;
    Address stack_top = 0; ///< in a function without a frame of its own: where it returns to; 0: not known
    std::int32_t thread = 0;
    std::int32_t cpu = 0;
    double time = 0; ///< CLOCK_MONOTONIC
    std::uint32_t stands_for = 0;
};

/// For any thread; what no one else does meanwhile is said.
class FaultSamples final : private RingVisitor {
  public:
    /// Faults from one sample to the next. Measured (4 KiB pages): a fault takes 3.5 to 5 us in a virtual
    /// machine and .5 us without one, a sample .3 us: a hundredth of the time in which memory is first
    /// touched. Of huge pages each fault clears 2 MiB, in 100 us and more.
    static constexpr std::uint32_t period = 61;
    static constexpr std::uint32_t period_of_huge_pages = 3;
    static constexpr std::uint32_t coarse = 64; ///< the coarse event's period is so many times the fine one's
    /// Bytes of one ring: of the first thread, which may fill everything, and of others (7 GiB of 4 KiB pages
    /// in the coarse one). Less where the kernel gives no more.
    static constexpr std::size_t first_ring_bytes = std::size_t{256} << 10;
    static constexpr std::size_t ring_bytes = std::size_t{32} << 10;
    /// Of all rings together: 900 threads, 4,000 with rings of a page.
    static constexpr std::uint64_t most_ring_bytes = std::uint64_t{64} << 20;
    /// Threads that are sampled at once, and seconds from one to the next behind them: events of a thread
    /// take 80 us of its time, which a program that makes threads all the time would pay each time.
    static constexpr double threads_at_once = 1024;
    static constexpr double seconds_each = 10e-3;
    /// Samples of threads that have ended.
    static constexpr std::size_t most_kept = std::size_t{1} << 18;

    /// The events of a thread.
    struct RingsOfThread {
        SamplerRing fine;
        SamplerRing coarse;
    };

    explicit FaultSamples(Kernel& kernel) : kernel_(kernel) {}
    ~FaultSamples() { close(); }
    FaultSamples(const FaultSamples&) = delete;
    FaultSamples& operator=(const FaultSamples&) = delete;

    /// Sample the calling thread, the only one so far. 0, or the errno of what was refused, and then nothing
    /// is open. huge: most of the memory comes in huge pages. budget: bytes that all rings may take.
    /// now: seconds, of any clock.
    int open(bool huge, std::uint64_t budget, double now);
    bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
    /// Sample the calling thread, which begins, too. What to give to end_thread(); null: it is not sampled.
    RingsOfThread* begin_thread(double now) noexcept;
    /// The calling thread ends: what it was seen to do is kept.
    void end_thread(RingsOfThread* rings) noexcept;
    /// Add what was seen since the last call, in the order of time.
    void drain(std::vector<FaultSample>& out);
    /// Faults of this process for which there was no room even in the coarse rings, about.
    std::uint64_t lost() const noexcept { return lost_; }
    /// Threads that were not sampled.
    std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
    void close();
    /// In the child of a fork, where the rings do not exist; or no system call may be made any more.
    void abandon() noexcept { open_.store(false, std::memory_order_release); }

  private:
    int open_rings(std::size_t pages, RingsOfThread& rings) noexcept;
    int open_fitting_rings(std::size_t bytes, RingsOfThread& rings) noexcept;
    void close_rings(RingsOfThread& rings) noexcept;
    void drain_rings(const RingsOfThread& rings, std::vector<FaultSample>& out);
    void sample(const Sample& sample) override;

    Kernel& kernel_;
    std::atomic<bool> open_{false};
    std::uint32_t period_ = period;
    std::uint64_t budget_ = 0;
    std::atomic<std::uint64_t> taken_{0};    ///< of it
    double opened_ = 0;                      ///< time of open()
    std::atomic<std::uint64_t> admitted_{0}; ///< threads since then
    std::atomic<std::uint64_t> refused_{0};
    RawMutex mutex_; ///< guards all that is below
    std::list<RingsOfThread> rings_;
    std::vector<FaultSample> kept_; ///< of threads that have ended
    std::uint64_t lost_ = 0;
    // While one thread's rings are drained.
    std::vector<FaultSample>* out_ = nullptr;
    std::uint32_t stands_for_ = 0;
    std::uint64_t later_than_ = 0; ///< earlier samples are of what the fine event has told
    std::uint64_t newest_ = 0;
};

} // namespace homing
