#include "sources/samplers.hpp"

#include "base/kept_errno.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace homing {
namespace {

/// Adds the index of the event, and gives AUX bytes back to the kernel once they were read.
class RingOfEvent final : public RingVisitor {
  public:
    RingOfEvent(SampleVisitor& visitor, std::size_t event, const SamplerRing& ring)
        : visitor_(visitor), event_(event), ring_(ring) {}
    void sample(const Sample& sample) override { visitor_.sample(event_, sample); }
    void aux(const AuxChunk& chunk) override {
        if (!ring_.aux) return;
        visitor_.aux(event_, ring_, chunk);
        auto* control = static_cast<perf_event_mmap_page*>(ring_.map);
        __atomic_store_n(&control->aux_tail, chunk.offset + chunk.size, __ATOMIC_RELEASE);
    }

  private:
    SampleVisitor& visitor_;
    std::size_t event_;
    const SamplerRing& ring_;
};

} // namespace

bool read_number(const std::string& path, long& value) noexcept {
    char text[64];
    if (raw::read_file(path.c_str(), text, sizeof text) <= 0) return false;
    char* end = nullptr;
    const KeptErrno kept;
    value = std::strtol(text, &end, 10);
    return end != text;
}

std::size_t ring_pages_within(std::size_t rings, std::size_t page, std::uint64_t budget) noexcept {
    std::size_t pages = std::max<std::size_t>(1, ThreadSamplers::ring_data_bytes / page);
    while (pages > 1 && std::uint64_t{rings} * (1 + pages) * page > budget / 2)
        pages /= 2;
    return pages;
}

std::uint64_t ring_budget(const char* proc) noexcept {
    long kilobytes = 0;
    if (!read_number(std::string(proc) + "/sys/kernel/perf_event_mlock_kb", kilobytes) || kilobytes < 0)
        kilobytes = 516;
    const long cpus = std::max(1l, ::sysconf(_SC_NPROCESSORS_ONLN));
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) limit.rlim_cur = 0;
    if (limit.rlim_cur == RLIM_INFINITY) return ~std::uint64_t{0};
    return static_cast<std::uint64_t>(kilobytes) * 1024 * static_cast<std::uint64_t>(cpus) + limit.rlim_cur;
}

std::string explain_sampler_error(int error, const char* proc) {
    long paranoid = 0;
    const bool known = read_number(std::string(proc) + "/sys/kernel/perf_event_paranoid", paranoid);
    switch (error) {
    case EACCES:
        return known ? "perf_event_paranoid is " + std::to_string(paranoid)
                     : std::string("perf events are not allowed here");
    case EPERM:
        if (known && paranoid > 2) return "perf_event_paranoid is " + std::to_string(paranoid);
        return "perf events are forbidden here (seccomp of a container) or no memory may be locked for them";
    case ENOSYS:
        return "the kernel has no perf events";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        return "this machine has no such event (virtual machine without a PMU?)";
    case EMFILE:
    case ENFILE:
        return "too many files are open";
    case EBUSY:
        return "another program uses the PMU";
    case ENOMEM:
        return "no memory for perf rings";
    default:
        return std::string("perf_event_open failed: ") + std::strerror(error);
    }
}

ThreadSamplers::ThreadSamplers(Kernel& kernel, std::string proc) : kernel_(kernel), proc_(std::move(proc)) {}

ThreadSamplers::~ThreadSamplers() { close(); }

/// The directory of threads has 2 links and one for each thread: the cheapest way to ask for their number.
nlink_t ThreadSamplers::thread_links() const noexcept {
    struct stat status{};
    const bool known = raw::status((proc_ + "/self/task").c_str(), status) == 0;
    return known ? status.st_nlink : 0;
}

bool ThreadSamplers::list_threads(std::vector<int>& ids) const {
    DIR* directory = ::opendir((proc_ + "/self/task").c_str());
    if (!directory) return false;
    while (const dirent* entry = ::readdir(directory)) {
        const int id = std::atoi(entry->d_name);
        if (id > 0) ids.push_back(id);
    }
    ::closedir(directory);
    std::sort(ids.begin(), ids.end());
    return true;
}

bool ThreadSamplers::open_thread(int id) {
    Thread thread{id, true, std::vector<SamplerRing>(events_.size())};
    bool any = false;
    for (std::size_t event = 0; event < events_.size() && open_rings_ < most_samplers; ++event) {
        int error = 0;
        while (true) {
            error = kernel_.open_sampler(events_[event], id, ring_pages_, thread.rings[event]);
            // The limit on locked memory shows as EPERM: try smaller rings, for later threads too.
            if ((error != EPERM && error != ENOMEM) || ring_pages_ <= 1) break;
            ring_pages_ /= 2;
        }
        if (error) {
            thread.rings[event] = {};
            if (error == ESRCH) return false; // it has ended meanwhile
            if (!refused_error_) refused_error_ = error;
            continue;
        }
        any = true;
        ++open_rings_;
    }
    const auto where = std::lower_bound(threads_.begin(), threads_.end(), id,
                                        [](const Thread& t, int value) { return t.id < value; });
    threads_.insert(where, std::move(thread));
    return any;
}

int ThreadSamplers::open(std::span<const SamplerEvent> events) {
    close();
    statistics_ = {};
    refused_error_ = 0;
    events_.assign(events.begin(), events.end());
    owner_ = raw::process_id();
    looks_ = 0;
    std::vector<int> ids;
    if (events_.empty() || !list_threads(ids)) return ENOENT;
    ring_pages_ = ring_pages_within(ids.size() * events_.size(), page_bytes(), ring_budget(proc_.c_str()));
    links_ = thread_links();
    for (int id : ids) {
        open_thread(id);
        // A machine that refuses the first thread refuses all: do not ask for thousands.
        if (open_rings_ == 0 && refused_error_) break;
    }
    if (open_rings_ > 0) return 0;
    const int error = refused_error_ ? refused_error_ : ESRCH;
    close();
    return error;
}

void ThreadSamplers::close_thread(Thread& thread) {
    for (SamplerRing& ring : thread.rings) {
        if (!ring.map) continue;
        kernel_.close_sampler(ring);
        ring = {};
        --open_rings_;
    }
}

void ThreadSamplers::close() {
    if (owner_ == raw::process_id())
        for (Thread& thread : threads_)
            close_thread(thread);
    abandon();
}

void ThreadSamplers::abandon() noexcept {
    threads_.clear();
    open_rings_ = 0;
    owner_ = 0;
}

void ThreadSamplers::drain_thread(Thread& thread, SampleVisitor& visitor) {
    for (std::size_t event = 0; event < thread.rings.size(); ++event) {
        const SamplerRing& ring = thread.rings[event];
        if (!ring.map) continue;
        RingOfEvent of_event(visitor, event, ring);
        drain_ring(ring, events_[event].weight, of_event, statistics_);
    }
}

void ThreadSamplers::look_for_threads(SampleVisitor* visitor) {
    const nlink_t links = thread_links();
    // One may have ended while another began: to be looked for now and then, the more rarely the longer it
    // takes.
    const bool due = ++looks_ >= 16 + threads_.size() / 4;
    if (links == links_ && !due) return;
    links_ = links;
    looks_ = 0;
    std::vector<int> ids;
    if (!list_threads(ids)) return;
    for (Thread& thread : threads_)
        thread.seen = std::binary_search(ids.begin(), ids.end(), thread.id);
    std::erase_if(threads_, [this, visitor](Thread& thread) {
        if (thread.seen) return false;
        if (visitor) drain_thread(thread, *visitor);
        close_thread(thread);
        return true;
    });
    for (int id : ids) {
        const auto place = std::lower_bound(threads_.begin(), threads_.end(), id,
                                            [](const Thread& t, int value) { return t.id < value; });
        const bool known = place != threads_.end() && place->id == id;
        if (!known) open_thread(id);
    }
}

void ThreadSamplers::drain(SampleVisitor& visitor) {
    if (owner_ == 0) return;
    if (owner_ != raw::process_id()) {
        abandon();
        return;
    }
    look_for_threads(&visitor);
    for (Thread& thread : threads_)
        drain_thread(thread, visitor);
}

std::size_t ThreadSamplers::refused() const noexcept {
    return static_cast<std::size_t>(std::count_if(threads_.begin(), threads_.end(), [](const Thread& thread) {
        return std::none_of(thread.rings.begin(), thread.rings.end(),
                            [](const SamplerRing& ring) { return ring.map != nullptr; });
    }));
}

} // namespace homing
