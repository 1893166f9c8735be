// Where the memory of this process was first touched: sampled from before main() on, put together at the end.
#pragma once

#include "areas/watch.hpp"
#include "first_touch/fault_samples.hpp"
#include "kernel/node_map.hpp"

#include <string>

namespace homing {

/// One thread at a time.
class FirstTouches {
  public:
    /// proc, sysfs: the folders of these file systems.
    explicit FirstTouches(Kernel& kernel, std::string proc = "/proc", std::string sysfs = "/sys");

    /// Watch this thread and those that it makes, on these CPUs. Where that is not possible, rows() says why.
    void begin(std::span<const int> cpus);
    /// What was seen so far makes room in the rings.
    void look();
    /// The rows `first_touch`, and the fact of that name: how it was seen, or why not.
    void rows(WatchList& watch, const NodeMap& nodes);
    /// In the child of a fork.
    void abandon() noexcept { faults_.abandon(); }

  private:
    Kernel& kernel_;
    std::string proc_;
    std::string sysfs_;
    FaultSamples faults_;
    std::vector<FaultSample> samples_;
    bool huge_ = false;
    std::string why_not_ = "not watched";
};

/// Those of this process: null where it is not to be watched.
FirstTouches* first_touches() noexcept;
/// Watch this process from now on, on all CPUs that it may use. At most once.
void watch_first_touches(Kernel& kernel) noexcept;

} // namespace homing
