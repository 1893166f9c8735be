// Reader of one mapped perf ring (perf_event_open(2), "MMAP layout"). The kernel writes records and moves
// data_head; the reader takes them out and moves data_tail. Records may wrap around the end of the buffer.
// Nothing here makes a system call or allocates, and no content of the buffer, however broken, makes it read
// outside the mapping.
#pragma once

#include "kernel/kernel.hpp"

#include <cstdint>

namespace homing {

/// PERF_RECORD_SAMPLE with the sample_type that SamplerEvent states.
struct Sample {
    std::uint32_t process = 0;
    std::uint32_t thread = 0;
    std::uint64_t time = 0; ///< ns of the perf clock
    Address address = 0;    ///< data address; 0 where the event had none
    std::uint32_t cpu = 0;
    std::uint64_t weight = 0;      ///< latency in core cycles, where asked for
    std::uint64_t data_source = 0; ///< union perf_mem_data_src, where asked for
    std::uint64_t instruction = 0; ///< address of the code
    std::uint64_t stack_top = 0;   ///< the word at the stack pointer, where asked for and readable
};

/// PERF_RECORD_AUX: `size` bytes at `offset` of the AUX buffer (modulo its size) were filled on `cpu`.
struct AuxChunk {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t flags = 0; ///< PERF_AUX_FLAG_*
    std::uint32_t cpu = 0;
};

/// What draining met, accumulated over calls.
struct RingStatistics {
    std::uint64_t samples = 0;
    std::uint64_t lost =
        0; ///< samples that the kernel said it lost (PERF_RECORD_LOST, _LOST_SAMPLES, truncated AUX)
    std::uint64_t throttled = 0; ///< times the kernel paused the event because it fired too often
    std::uint64_t unknown = 0;   ///< records of other types
    std::uint64_t malformed = 0; ///< records whose size cannot be
};

/// Receives what a ring holds, in order.
class RingVisitor {
  public:
    virtual void sample(const Sample& sample) = 0;
    virtual void aux(const AuxChunk&) {}

  protected:
    ~RingVisitor() = default;
};

/// Take everything out of the ring that was there at the call (a reader that keeps up with a writer forever
/// does not hang). `weight` and `stack_top` (one of them at the most) as in the SamplerEvent of the ring.
/// Callable by one thread at a time for one ring.
void drain_ring(const SamplerRing& ring, bool weight, RingVisitor& visitor, RingStatistics& statistics,
                bool stack_top = false);

/// Throw away what is there. Returns the number of bytes.
std::uint64_t clear_ring(const SamplerRing& ring);

} // namespace homing
