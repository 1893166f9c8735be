// Where the memory of this process was first touched: sampled from its start on, put together at the end.
//
// Where nobody else uses perf, its first event makes the kernel patch its code and wait for all CPUs, 11 to
// 17 ms (Linux 6.1). A thread of homing's own waits for that, so that the program does not; what is touched
// meanwhile is counted, not sampled.
#pragma once

#include "areas/watch.hpp"
#include "base/helper_thread.hpp"
#include "first_touch/fault_samples.hpp"
#include "kernel/node_map.hpp"

#include <atomic>
#include <string>
#include <vector>

namespace homing {

/// One thread at a time.
class FirstTouches {
  public:
    /// proc, sysfs: the folders of these file systems.
    explicit FirstTouches(Kernel& kernel, std::string proc = "/proc", std::string sysfs = "/sys");

    /// Watch this thread and all others of the process, on these CPUs, from soon on. Where that is not
    /// possible, rows() says why. wait: return when they are watched, or cannot be.
    void begin(std::vector<int> cpus, bool wait);
    /// What was seen so far makes room in the rings.
    void look();
    /// The rows `first_touch`, and the fact of that name: how it was seen, or why not.
    void rows(WatchList& watch, const NodeMap& nodes);
    /// In the child of a fork.
    void abandon() noexcept;

  private:
    enum class State { opening, open, refused };
    static double open_all(void* self) noexcept;
    int open();
    /// Faults that came before they were sampled, where those are more than a few; else 0.
    std::uint64_t missed() noexcept;

    Kernel& kernel_;
    std::string proc_;
    std::string sysfs_;
    HelperThread opener_;
    std::atomic<State> state_{State::opening}; ///< what follows is the opener's until it is another
    FaultSamples faults_;
    std::vector<int> cpus_;
    int thread_ = 0; ///< that is watched with those that it makes
    double began_ = 0, opened_ = 0;
    std::uint64_t faults_before_ = 0; ///< of the process, when begin() was called
    std::uint64_t faults_opened_ = 0; ///< and when they were sampled
    std::vector<FaultSample> samples_;
    bool huge_ = false;
    std::string why_not_ = "the program ended before perf was ready";
};

/// Those of this process: null where it is not to be watched.
FirstTouches* first_touches() noexcept;
/// Watch this process from soon on, on all CPUs that it may use. At most once. wait: from now on.
void watch_first_touches(Kernel& kernel, bool wait) noexcept;

} // namespace homing
