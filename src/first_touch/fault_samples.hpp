// Sampled page faults of the whole process, with the code that made them: what touches memory that does not
// exist yet faults, so these are first touches (the kernel's hint faults are told apart in
// touched_extents.hpp).
//
// Two software events of perf on each CPU, inherited by all threads to come, so that a team that fills an
// array as soon as it exists is seen from its first page on. Nobody empties the rings while the program
// runs: the fine event keeps the first of its samples, the coarse one reaches 64 times as far.
#pragma once

#include "kernel/kernel.hpp"
#include "sources/ring.hpp"

#include <cstdint>
#include <span>
#include <sys/types.h>
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

/// One thread at a time.
class FaultSamples final : private RingVisitor {
  public:
    /// Faults from one sample to the next. Measured (4 KiB pages): a fault takes 3.5 to 5 us in a virtual
    /// machine and .5 us without one, a sample .3 us: a hundredth of the time in which memory is first
    /// touched. Of huge pages each fault clears 2 MiB, in 100 us and more.
    static constexpr std::uint32_t period = 61;
    static constexpr std::uint32_t period_of_huge_pages = 3;
    static constexpr std::uint32_t coarse = 64; ///< the coarse event's period is so many times the fine one's
    /// Bytes of all rings together, and of one: perf_event_mlock_kb (516 by default, for each CPU) allows
    /// more.
    static constexpr std::size_t ring_bytes = std::size_t{8} << 20;
    static constexpr std::size_t most_ring_bytes = std::size_t{256} << 10;

    explicit FaultSamples(Kernel& kernel) : kernel_(kernel) {}
    ~FaultSamples() { close(); }
    FaultSamples(const FaultSamples&) = delete;
    FaultSamples& operator=(const FaultSamples&) = delete;

    /// Sample this thread and those that it makes, on these CPUs. 0, or the errno of the first that was
    /// refused, and then nothing is open. huge: most of the memory comes in huge pages.
    int open(std::span<const int> cpus, bool huge);
    bool is_open() const noexcept { return !rings_.empty(); }
    /// Add what was seen since the last call, in the order of time.
    void drain(std::vector<FaultSample>& out);
    /// Faults of this process for which there was no room even in the coarse ring, about.
    std::uint64_t lost() const noexcept { return lost_; }
    void close();
    /// In the child of a fork: the rings do not exist there.
    void abandon() noexcept { rings_.clear(); }

  private:
    struct RingsOfCpu {
        SamplerRing fine;
        SamplerRing coarse;
    };

    void sample(const Sample& sample) override;

    Kernel& kernel_;
    std::vector<RingsOfCpu> rings_;
    std::uint32_t period_ = period;
    std::uint64_t lost_ = 0;
    pid_t process_ = 0;
    // While one ring is drained.
    std::vector<FaultSample>* out_ = nullptr;
    std::uint32_t stands_for_ = 0;
    std::uint64_t later_than_ = 0; ///< earlier samples are of what the fine event has told
    std::uint64_t newest_ = 0;
};

} // namespace homing
