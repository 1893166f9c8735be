// The real kernel: every memory system call of homing is made here.
#include "kernel/kernel.hpp"
#include "kernel/move_status.hpp"
#include "kernel/node_mask.hpp"
#include "kernel/threads_of_process.hpp"

#include "base/index_list.hpp"
#include "base/page_scan.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/utsname.h>

namespace homing {
namespace {

/// Retries what the contract retries; a positive errno or 0. A positive result goes to `value`.
template <class... Arguments> int retried(long* value, long number, Arguments... arguments) noexcept {
    long result = 0;
    for (int attempt = 0; attempt < 4; ++attempt) {
        result = raw::call(number, arguments...);
        if (result != -EINTR && result != -EAGAIN) break;
    }
    if (value) *value = result;
    return result < 0 ? static_cast<int>(-result) : 0;
}

bool release_before(long major, long minor) noexcept {
    utsname name{};
    if (::uname(&name) != 0) return false;
    char* rest = nullptr;
    const long first = std::strtol(name.release, &rest, 10);
    const long second = *rest == '.' ? std::strtol(rest + 1, nullptr, 10) : 0;
    return first < major || (first == major && second < minor);
}

class LinuxKernel final : public Kernel {
  public:
    int query(std::span<void* const> pages, std::span<int> nodes) noexcept override {
        if (pages.empty()) return 0;
        std::fill(nodes.begin(), nodes.end(), not_attempted);
        return retried(nullptr, SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0);
    }

    int populated(std::span<const Range> ranges, std::span<std::uint8_t> found) noexcept override {
        // A program may close descriptors that are not its own: opened for each call.
        const int pagemap = raw::open("/proc/self/pagemap", O_RDONLY);
        if (pagemap < 0) return -pagemap;
        // What follows without a gap is looked at together: of pages that exist so many at a time, which
        // takes about as long as the call itself.
        constexpr std::uint64_t most_pages = 512;
        int error = 0;
        for (std::size_t i = 0, end = 0; i < ranges.size() && error == 0;) {
            for (end = std::max(end, i + 1); end < ranges.size(); ++end)
                if (ranges[end].begin != ranges[end - 1].end) break;
            const auto first = first_pages(pagemap, {ranges[i].begin, ranges[end - 1].end}, page_is_present,
                                           page_is_zero_page, most_pages);
            if (!first) error = ENOSYS; // before Linux 6.7
            for (; first && i < end && ranges[i].end <= first->begin; ++i)
                found[i] = 0;
            for (; first && i < end && ranges[i].begin < first->end; ++i)
                found[i] = 1;
        }
        raw::close(pagemap);
        return error;
    }

    std::uint64_t page_faults() noexcept override {
        rusage used{};
        if (raw::call(SYS_getrusage, RUSAGE_SELF, &used) != 0) return 0;
        return static_cast<std::uint64_t>(used.ru_minflt);
    }

    bool hides_pages() noexcept override {
        // Asked for in signal handlers: no guarded static.
        int known = hides_.load(std::memory_order_relaxed);
        if (known < 0) {
            known = release_before(6, 6);
            hides_.store(known, std::memory_order_relaxed);
        }
        return known != 0;
    }
    int reveal(std::span<void* const> pages) noexcept override;

    int move(std::span<void* const> pages, std::span<const int> targets,
             std::span<int> status) noexcept override {
        if (pages.empty()) return 0;
        std::fill(status.begin(), status.end(), not_attempted);
        long left = 0;
        const int error = retried(&left, SYS_move_pages, 0, pages.size(), pages.data(), targets.data(),
                                  status.data(), MPOL_MF_MOVE);
        if (error || left > 0) explain_moves(*this, pages, targets, status, error);
        return error;
    }

    int bind(Range range, MemoryPolicy policy) noexcept override {
        NodeMask mask;
        mask.words[0] = policy.nodes.bits;
        // MPOL_DEFAULT and MPOL_LOCAL want no mask at all.
        const bool empty = policy.nodes.bits == 0;
        return retried(nullptr, SYS_mbind, range.begin, range.bytes(), policy.mode,
                       empty ? nullptr : static_cast<const void*>(mask.words), empty ? 0 : NodeMask::bits + 1,
                       0);
    }

    int policy_at(Address address, MemoryPolicy& policy) noexcept override {
        return read_policy(address, MPOL_F_ADDR, policy);
    }

    int task_policy(MemoryPolicy& policy) noexcept override { return read_policy(0, 0, policy); }

    int allowed_nodes(NodeSet& nodes) noexcept override {
        NodeMask mask;
        const int error = retried(nullptr, SYS_get_mempolicy, nullptr, mask.words, NodeMask::bits + 1,
                                  nullptr, MPOL_F_MEMS_ALLOWED);
        return error ? error : mask.get(nodes);
    }

    int protect(Range range, Access access) noexcept override {
        return retried(nullptr, SYS_mprotect, range.begin, range.bytes(),
                       access == Access::none ? PROT_NONE : PROT_READ | PROT_WRITE);
    }

    Mappings mappings() noexcept override;

    int current_node() noexcept override {
        unsigned cpu = 0;
        unsigned node = 0;
        const int saved = errno;
        const int failed = ::getcpu(&cpu, &node); // the vDSO's: no system call on most architectures
        errno = saved;
        return failed ? 0 : static_cast<int>(node);
    }

    std::uint64_t free_bytes(int node) noexcept override;
    int open_sampler(const SamplerEvent& event, int thread, std::size_t pages,
                     SamplerRing& ring) noexcept override;
    void close_sampler(SamplerRing& ring) noexcept override;
    int node_of_cpu(int cpu) noexcept override;
    std::vector<Thread> threads() override {
        return threads_of_process([this](int cpu) { return node_of_cpu(cpu); });
    }

  private:
    class FaultsMoveNothing;

    int read_policy(Address address, unsigned long flags, MemoryPolicy& policy) noexcept {
        NodeMask mask;
        int mode = 0;
        const int error =
            retried(nullptr, SYS_get_mempolicy, &mode, mask.words, NodeMask::bits + 1, address, flags);
        if (error) return error;
        NodeSet nodes;
        // Half a policy must not be given back later as if it were the whole.
        if (const int beyond = mask.get(nodes)) return beyond;
        policy = {mode, nodes};
        return 0;
    }

    void read_cpu_nodes() noexcept;

    // 8,192 CPUs are the most that a distribution's kernel is built for. A node + 1, 0: not known.
    static constexpr int most_cpus = 8192;
    std::atomic<std::uint8_t> cpu_nodes_[most_cpus] = {};
    std::atomic<bool> cpu_nodes_read_{false};
    std::atomic<int> hides_{-1}; ///< not asked yet
};

/// While it lives, the hint faults of this thread move no page of memory that has no policy of its own.
///
/// Under the default policy the balancer moves a page at the first fault as long as a program is young
/// (mm/memory.c and kernel/sched/fair.c, should_numa_migrate_memory): what homing touches only to see where
/// it is would come to homing's node (measured: 99 % of an array that was initialised in parallel).
class LinuxKernel::FaultsMoveNothing {
  public:
    explicit FaultsMoveNothing(LinuxKernel& kernel) noexcept {
        MemoryPolicy policy;
        error_ = kernel.task_policy(policy);
        // A policy that the user chose is not touched. None but a BIND that asks for it is balanced.
        if (error_ || policy.mode != MPOL_DEFAULT) return;
        error_ = retried(nullptr, SYS_set_mempolicy, MPOL_LOCAL, nullptr, 0);
        changed_ = error_ == 0;
    }
    FaultsMoveNothing(const FaultsMoveNothing&) = delete;
    FaultsMoveNothing& operator=(const FaultsMoveNothing&) = delete;
    ~FaultsMoveNothing() {
        if (changed_) retried(nullptr, SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
    }
    /// 0, or why they may move pages.
    int error() const noexcept { return error_; }

  private:
    int error_ = 0;
    bool changed_ = false;
};

int LinuxKernel::reveal(std::span<void* const> pages) noexcept {
    const FaultsMoveNothing guard(*this);
    if (guard.error()) return guard.error();
    const int pagemap = raw::open("/proc/self/pagemap", O_RDONLY);
    if (pagemap < 0) return -pagemap;
    // process_vm_readv(2) takes hint faults, and answers EFAULT where a read of our own would be a signal.
    constexpr std::size_t batch = 32; // the caller may stand on an alternate signal stack
    iovec there[batch];
    char bytes[batch];
    std::size_t count = 0;
    int error = 0;
    const auto touch = [&] {
        for (std::size_t at = 0; at < count && !error;) {
            const iovec here{bytes, count - at};
            long got = 0;
            const int failed =
                retried(&got, SYS_process_vm_readv, raw::process_id(), &here, 1, there + at, count - at, 0);
            if (failed && failed != EFAULT) error = failed;
            at += failed
                      ? 1
                      : static_cast<std::size_t>(got); // a byte each; one that cannot be read is passed over
        }
        count = 0;
    };
    for (void* page : pages) {
        std::uint64_t entry = 0;
        const auto offset = reinterpret_cast<Address>(page) / page_bytes() * sizeof entry;
        const bool there_is =
            raw::read_at(pagemap, &entry, sizeof entry, offset) == sizeof entry && (entry >> 63) != 0;
        if (!there_is) continue;
        there[count++] = {page, 1};
        if (count == batch) touch();
    }
    touch();
    raw::close(pagemap);
    return error;
}

/// A file of a node's directory in sysfs. No snprintf: it may allocate.
long read_node_file(int node, const char* file, char* buffer, std::size_t bytes) noexcept {
    char path[64] = "/sys/devices/system/node/node";
    char* end = path + std::strlen(path);
    if (node >= 10) *end++ = static_cast<char>('0' + node / 10);
    *end++ = static_cast<char>('0' + node % 10);
    std::strcpy(end, file);
    return raw::read_file(path, buffer, bytes);
}

Kernel::Mappings LinuxKernel::mappings() noexcept {
    Mappings found;
    char text[4096]; // the kernel gives no more at a time
    if (raw::read_file("/proc/sys/vm/max_map_count", text, sizeof text) <= 0) return {};
    const long most = std::strtol(text, nullptr, 10);
    const int maps = raw::open("/proc/self/maps", O_RDONLY);
    if (most <= 0 || maps < 0) {
        raw::close(maps);
        return {};
    }
    found.most = static_cast<std::size_t>(most);
    for (;;) {
        const long got = raw::call(SYS_read, maps, text, sizeof text);
        if (got == -EINTR) continue;
        if (got <= 0) break;
        found.now += static_cast<std::size_t>(std::count(text, text + got, '\n'));
    }
    raw::close(maps);
    return found.now ? found : Mappings{};
}

std::uint64_t LinuxKernel::free_bytes(int node) noexcept {
    if (node < 0 || node >= max_nodes) return 0;
    char text[4096];
    if (read_node_file(node, "/meminfo", text, sizeof text) <= 0) return 0;

    const auto kib = [&text](const char* key) -> std::uint64_t {
        const char* at = std::strstr(text, key);
        if (!at) return 0;
        at += std::strlen(key);
        while (*at == ' ')
            ++at;
        std::uint64_t value = 0;
        for (; *at >= '0' && *at <= '9'; ++at)
            value = value * 10 + static_cast<std::uint64_t>(*at - '0');
        return value;
    };
    return (kib("MemFree:") + kib("Inactive(file):")) * 1024;
}

/// Map without inheriting into children (a child that touches a ring gets a SIGSEGV).
void* map_event(int descriptor, std::size_t bytes, std::uint64_t offset, int& error) noexcept {
    void* map = raw::map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset, error);
    if (map) raw::call(SYS_madvise, map, bytes, MADV_DONTFORK);
    return map;
}

int LinuxKernel::open_sampler(const SamplerEvent& event, int thread, std::size_t pages,
                              SamplerRing& ring) noexcept {
    ring = {};
    ring.thread = thread;
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = event.type;
    attributes.config = event.config;
    attributes.config1 = event.config1;
    attributes.config2 = event.config2;
    attributes.sample_period = event.period;
    attributes.sample_type =
        PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU;
    if (event.weight) attributes.sample_type |= PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
    attributes.use_clockid = event.monotonic;
    attributes.clockid = event.monotonic ? CLOCK_MONOTONIC : 0;
    attributes.precise_ip = static_cast<unsigned>(event.precise) & 3;
    attributes.exclude_kernel = event.exclude_kernel;
    attributes.exclude_hv = event.exclude_kernel;
    attributes.sample_id_all = event.aux_pages != 0;

    if (event.stack_top) {
        attributes.sample_type |= PERF_SAMPLE_STACK_USER;
        attributes.sample_stack_user = sizeof(Address);
    }

    const auto open_event = [thread](const perf_event_attr& what, int group, long& descriptor) {
        return retried(&descriptor, SYS_perf_event_open, &what, thread, -1, group, PERF_FLAG_FD_CLOEXEC);
    };
    long leader = -1;
    long sampler = -1;
    int error = 0;
    if (event.with_leader) {
        perf_event_attr counting{};
        counting.size = sizeof counting;
        counting.type = event.type;
        counting.config = event.leader_config;
        counting.exclude_kernel = event.exclude_kernel;
        counting.exclude_hv = event.exclude_kernel;
        error = open_event(counting, -1, leader);
        if (!error) ring.leader = map_event(static_cast<int>(leader), page_bytes(), 0, error);
    }
    if (!error) error = open_event(attributes, static_cast<int>(leader), sampler);
    if (!error) {
        ring.bytes = (1 + pages) * page_bytes();
        ring.map = map_event(static_cast<int>(sampler), ring.bytes, 0, error);
    }
    if (!error && event.aux_pages) {
        auto* control = static_cast<perf_event_mmap_page*>(ring.map);
        ring.aux_bytes = event.aux_pages * page_bytes();
        control->aux_offset = ring.bytes;
        control->aux_size = ring.aux_bytes;
        ring.aux = map_event(static_cast<int>(sampler), ring.aux_bytes, control->aux_offset, error);
    }
    if (sampler >= 0) raw::close(static_cast<int>(sampler));
    if (leader >= 0) raw::close(static_cast<int>(leader));
    if (error) close_sampler(ring);
    return error;
}

void LinuxKernel::close_sampler(SamplerRing& ring) noexcept {
    // The AUX buffer first: the kernel stops its writer when it is unmapped.
    raw::unmap(ring.aux, ring.aux_bytes);
    raw::unmap(ring.map, ring.bytes);
    raw::unmap(ring.leader, page_bytes());
    ring = {};
}

/// Two threads that arrive first together both read, and store the same values.
void LinuxKernel::read_cpu_nodes() noexcept {
    constexpr std::size_t bytes = 48 * 1024; // a list of 8,192 CPUs with nothing contiguous
    auto* text = static_cast<char*>(raw::map_memory(bytes));
    if (!text) return;
    NodeSet online;
    if (raw::read_file("/sys/devices/system/node/online", text, bytes) > 0) {
        for_each_index(text, [&online](int node) { online.add(node); });
    } else if (raw::read_file("/sys/devices/system/cpu/possible", text, bytes) > 0) {
        // A kernel without NUMA has no node directory: everything is node 0.
        for_each_index(text, [this](int cpu) {
            if (cpu < most_cpus) cpu_nodes_[cpu].store(1, std::memory_order_relaxed);
        });
    }
    for (int node = 0; node < max_nodes; ++node) {
        if (!online.has(node)) continue;
        if (read_node_file(node, "/cpulist", text, bytes) <= 0) continue;
        for_each_index(text, [this, node](int cpu) {
            if (cpu < most_cpus) {
                cpu_nodes_[cpu].store(static_cast<std::uint8_t>(node + 1), std::memory_order_relaxed);
            }
        });
    }
    raw::unmap(text, bytes);
    cpu_nodes_read_.store(true, std::memory_order_release);
}

int LinuxKernel::node_of_cpu(int cpu) noexcept {
    if (cpu < 0 || cpu >= most_cpus) return -1;
    if (!cpu_nodes_read_.load(std::memory_order_acquire)) read_cpu_nodes();
    return static_cast<int>(cpu_nodes_[cpu].load(std::memory_order_relaxed)) - 1;
}

// Never destroyed: signal handlers and hooks use it until the process is gone.
union Forever {
    LinuxKernel kernel;
    constexpr Forever() : kernel() {}
    ~Forever() {}
};
constinit Forever forever;

} // namespace

Kernel& linux_kernel() noexcept { return forever.kernel; }

} // namespace homing
