// Where the memory of this process was first touched: sampled from before main() on, put together at the end.
#pragma once

#include "areas/watch.hpp"
#include "base/clock.hpp"
#include "first_touch/fault_samples.hpp"
#include "kernel/node_map.hpp"

#include <string>

namespace homing {

/// One thread at a time but where it is said.
class FirstTouches {
  public:
    /// proc, sysfs: the folders of these file systems.
    explicit FirstTouches(Kernel& kernel, std::string proc = "/proc", std::string sysfs = "/sys");

    /// Watch this thread, the only one so far. Where that is not possible, rows() says why.
    void begin();
    /// Whatever other threads do: watch the calling thread, which begins, or no longer, as it ends.
    FaultSamples::RingsOfThread* begin_thread() noexcept { return faults_.begin_thread(monotonic_seconds()); }
    void end_thread(FaultSamples::RingsOfThread* rings) noexcept { faults_.end_thread(rings); }
    bool is_watching() const noexcept { return faults_.is_open(); }
    /// What was seen so far makes room in the rings.
    void look();
    /// The rows `first_touch`, and the fact of that name: how it was seen, or why not.
    void rows(WatchList& watch, const NodeMap& nodes);
    /// In the child of a fork, or where no system call may be made any more.
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
/// Watch this process, which has one thread, from now on. At most once.
void watch_first_touches(Kernel& kernel) noexcept;
/// Are threads that begin to call watch_new_thread()? They are watched until they end, then.
bool watches_new_threads() noexcept;
void watch_new_thread() noexcept;

} // namespace homing
