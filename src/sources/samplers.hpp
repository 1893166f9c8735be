// Samplers of every thread of this process: one perf ring a thread and event, opened for the threads that are
// there, for new ones as they are noticed, and closed after threads have ended. A thread may only be sampled
// by its own event because the kernel refuses to map a ring of an inherited one (perf_event_open(2)).
#pragma once

#include "kernel/kernel.hpp"
#include "sources/ring.hpp"

#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace homing {

/// Receives what the samplers saw; `event` is the index in the list given to open().
class SampleVisitor {
  public:
    virtual void sample(std::size_t event, const Sample& sample) = 0;
    /// New bytes in the AUX buffer of a ring; it is released after this call.
    virtual void aux(std::size_t, const SamplerRing&, const AuxChunk&) {}

  protected:
    ~SampleVisitor() = default;
};

/// Used by the driver of the engine only: one thread at a time.
class ThreadSamplers {
  public:
    static constexpr std::size_t ring_data_bytes = 256 * 1024; ///< of one ring, where the limits permit
    static constexpr std::size_t most_samplers = 8192;

    explicit ThreadSamplers(Kernel& kernel, std::string proc = "/proc");
    ~ThreadSamplers();
    ThreadSamplers(const ThreadSamplers&) = delete;
    ThreadSamplers& operator=(const ThreadSamplers&) = delete;

    /// Open these events for every thread of the process. 0 where at least one sampler is open afterwards,
    /// else the errno of the first that was refused. Rings get smaller until they fit what may be locked.
    int open(std::span<const SamplerEvent> events);
    /// Take out what was seen: one look at each ring, the rest is for what came. Threads that began or ended
    /// since are noticed where their number changed, and every sixteenth time (or more rarely, where there
    /// are many threads) in any case.
    void drain(SampleVisitor& visitor);
    /// Threads that began since are followed from now on.
    void follow_threads() {
        if (is_open()) look_for_threads(nullptr);
    }
    void close();

    bool is_open() const noexcept { return !threads_.empty(); }
    std::size_t threads() const noexcept { return threads_.size(); }
    /// Threads for which no sampler could be opened, and why the first was refused.
    std::size_t refused() const noexcept;
    int refused_error() const noexcept { return refused_error_; }
    std::size_t ring_pages() const noexcept { return ring_pages_; }
    /// Accumulated since open().
    const RingStatistics& statistics() const noexcept { return statistics_; }

  private:
    struct Thread {
        int id = 0;
        bool seen = false;              ///< by the last look at the list of threads
        std::vector<SamplerRing> rings; ///< by event; map is null where it was refused
    };

    /// In the child of a fork: the rings do not exist there; forget them.
    void abandon() noexcept;
    bool list_threads(std::vector<int>& ids) const;
    nlink_t thread_links() const noexcept;
    void look_for_threads(SampleVisitor* visitor);
    bool open_thread(int id);
    void drain_thread(Thread& thread, SampleVisitor& visitor);
    void close_thread(Thread& thread);

    Kernel& kernel_;
    std::string proc_;
    std::vector<SamplerEvent> events_;
    std::vector<Thread> threads_; ///< ascending by id
    std::size_t ring_pages_ = 0;
    std::size_t open_rings_ = 0;
    nlink_t links_ = 0;
    std::size_t looks_ = 0; ///< at the number of threads since their list was read
    pid_t owner_ = 0;
    int refused_error_ = 0;
    RingStatistics statistics_;
};

/// How many data pages (a power of two) each of `rings` rings may have: ring_data_bytes, or less where all of
/// them together would take more than half of `budget` bytes (others of the same user need some, too). At
/// least 1.
std::size_t ring_pages_within(std::size_t rings, std::size_t page, std::uint64_t budget) noexcept;

/// Bytes that this user's processes may lock for perf rings: perf_event_mlock_kb for each CPU and
/// RLIMIT_MEMLOCK.
std::uint64_t ring_budget(const char* proc) noexcept;

/// Why opening a sampler failed, in a few words for the user.
std::string explain_sampler_error(int error, const char* proc);

/// The number in a small file such as /proc/sys/kernel/numa_balancing. False where there is none.
bool read_number(const std::string& path, long& value) noexcept;

} // namespace homing
