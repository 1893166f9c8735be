// The simulated machine as the rest of homing sees it (simulator/ implements it): another kernel, another
// machine, an exact source of references, and a listener that counts by region and iteration. Null in the
// ordinary library.
#pragma once

#include "kernel/kernel.hpp"
#include "machine/machine.hpp"

#include <atomic>
#include <cstdint>

namespace homing {

class Engine;
class ReferenceSource;
namespace phases {
class Listener;
}

class Simulation {
  public:
    virtual ~Simulation() = default;

    virtual Kernel& kernel() noexcept = 0;
    virtual Machine machine() = 0;
    /// Does its kernel balance memory, as kernel.numa_balancing does?
    virtual bool balances() const noexcept = 0;
    /// Exact counts of misses, a page and node at a time. The caller owns it.
    virtual ReferenceSource* make_source() = 0;
    /// A listener that counts, in front of the engine's (null: the engine stepped aside).
    virtual phases::Listener* listen(Engine* engine) = 0;
    /// Threads and where they are, into the record.
    virtual void record_threads() = 0;

    /// Misses in this memory belong to the area from now on; driver only.
    virtual void area_begins(std::uint32_t area, Range range, const char* name) = 0;
    virtual void area_ends(std::uint32_t area, Range range) = 0;

    /// [any thread] A block was given back to the allocator; `gone`: its pages left the process.
    virtual void freed(Range range, bool gone) noexcept = 0;
    /// [any thread] Pages left the process (munmap, MADV_DONTNEED), or were moved elsewhere (mremap).
    virtual void unmapped(Range range) noexcept = 0;
    virtual void remapped(Range from, Range to) noexcept = 0;
    /// [any thread] Code that is not instrumented uses this memory: pages get homes.
    virtual void touched(const void* memory, std::size_t bytes) noexcept = 0;

    /// The last rows, before the record is closed.
    virtual void report() noexcept = 0;
    /// The process ends. engine: null where none was started.
    virtual void finish(Engine* engine) noexcept = 0;
    /// In the child of a fork nothing is simulated.
    virtual void abandon() noexcept = 0;
};

/// Defined in the simulator's library only: reads what it was given, and calls set_simulation and
/// play_machine.
extern "C" __attribute__((weak, visibility("hidden"))) void homing_prepare_simulation() noexcept;
/// The simulated machine's answer to a system call by number, with errno; false: the call is the kernel's.
extern "C" __attribute__((weak, visibility("hidden"))) bool
homing_simulated_call(long number, const long* arguments, long* result) noexcept;

namespace detail {
inline constinit std::atomic<Simulation*> the_simulation{nullptr};
}

/// The simulation of this process, or null.
inline Simulation* simulation() noexcept { return detail::the_simulation.load(std::memory_order_acquire); }
inline void set_simulation(Simulation* simulation) noexcept {
    detail::the_simulation.store(simulation, std::memory_order_release);
}

} // namespace homing
