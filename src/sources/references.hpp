// Who touches which page: reference counters (page x node) and the interface of their sources.
#pragma once

#include "areas/watched_range.hpp"
#include "base/pages.hpp"
#include "kernel/kernel.hpp"
#include "machine/machine.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace homing {

class PolicyKeeper;

/// One observed reference: the byte that was touched, the node whose CPU touched it.
struct Reference {
    Address address = 0;
    std::int16_t node = -1;
    bool write = false;
    std::uint32_t weight =
        1; ///< references this sample stands for, in units of the source's unit(), at least 1
    std::int32_t thread = 0; ///< the kernel's number of the thread; 0: not known
    Address instruction = 0; ///< that made the reference; 0: not known
    double time = 0;         ///< seconds of the clock (base/clock.hpp); 0: not known
};

/// A source of references. All calls come from the driver of the engine (one thread at a time) at points
/// outside parallel regions, except region_begin/end, which bracket a top-level parallel region.
class ReferenceSource {
  public:
    virtual ~ReferenceSource() = default;
    virtual const char* name() const noexcept = 0;

    /// Can it work here? Empty string: yes. Otherwise the reason in a few words ("perf_event_paranoid is 3").
    virtual std::string unavailable() = 0;

    /// Begin to observe these ranges (called again whenever the set changes). False: refused, reason() says
    /// why.
    virtual bool start(std::span<const WatchedRange> ranges) = 0;
    /// Stop observing; the machine is left as it was found.
    virtual void stop() = 0;

    /// Threads may have begun since: a team comes with its first region.
    virtual void follow_threads() {}

    /// Leave the pages alone until the next start(): they are about to be touched and moved by ourselves.
    virtual void pause() {}

    /// Take out what was seen since the last call.
    virtual void drain(std::vector<Reference>& out) = 0;

    /// References that weight 1 stands for: small weights keep 16-bit counters from saturating. PMU: the
    /// sampling period that it began with; others: 1 (a fault that was seen).
    virtual std::uint64_t unit() const noexcept { return 1; }

    /// Samples lost (ring overruns, refused protections) since start.
    virtual std::uint64_t lost() const noexcept { return 0; }
    virtual std::string reason() const { return {}; }

    /// Every reference is a cache miss, and none is left out: costs need no model of what a touch stands for.
    virtual bool counts_misses() const noexcept { return false; }

    /// References come as a scan goes through memory: what was not seen yet may be what it has not come to.
    virtual bool scans() const noexcept { return false; }
};

/// Precise memory samples of the PMU: Intel PEBS, AMD IBS, Arm SPE. `sysfs` is the root of the sysfs tree, so
/// that recorded trees of other machines can be tested.
ReferenceSource* make_pmu_source(Kernel& kernel, const char* sysfs = "/sys", const char* proc = "/proc");

/// The kernel's NUMA hint faults, read as perf software page-fault events. While it observes, it lays the
/// `observed` layer of `keeper` over the watched ranges; with the engine's own keeper the layers of both stay
/// in order. Without one it uses its own.
ReferenceSource* make_hint_fault_source(Kernel& kernel, const Machine& machine, const char* proc = "/proc",
                                        PolicyKeeper* keeper = nullptr);

} // namespace homing
