#include "machine/threads.hpp"

#include "base/helper_thread.hpp"
#include "record/record.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <memory>
#include <string>

namespace homing {
namespace {

/// The CPUs that a thread may run on. The kernel refuses sets that are smaller than its own, which may be
/// larger than a cpu_set_t: the set grows until it is accepted.
class CpuSet {
  public:
    /// 0, or an errno.
    int read(pid_t thread, AffinityOf affinity_of) {
        for (;; cpus_ *= 2) {
            set_.reset(CPU_ALLOC(cpus_));
            if (!set_) return ENOMEM;
            CPU_ZERO_S(bytes(), set_.get());
            if (affinity_of(thread, bytes(), set_.get()) == 0) return 0;
            if (errno != EINVAL || cpus_ >= most_cpus) return errno;
        }
    }
    template <class Visit> void for_each(Visit&& visit) const {
        for (std::size_t cpu = 0; cpu < cpus_; ++cpu)
            if (CPU_ISSET_S(cpu, bytes(), set_.get())) visit(static_cast<int>(cpu));
    }

  private:
    static constexpr std::size_t most_cpus = std::size_t{1} << 20;
    struct Free {
        void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
    };
    std::size_t bytes() const noexcept { return CPU_ALLOC_SIZE(cpus_); }

    std::size_t cpus_ = CPU_SETSIZE;
    std::unique_ptr<cpu_set_t, Free> set_;
};

record::thread_row row_of(pid_t thread, const CpuSet& cpus, Kernel& kernel) {
    record::thread_row row;
    row.thread = static_cast<record::u32>(thread);
    NodeSet nodes;
    int count = 0;
    cpus.for_each([&](int cpu) {
        nodes.add(kernel.node_of_cpu(cpu));
        row.cpu = cpu;
        ++count;
    });
    row.bound = nodes.count() == 1;
    row.node = row.bound ? nodes.first() : -1;
    if (count != 1) row.cpu = -1;
    row.time = record::now();
    return row;
}

} // namespace

int bound_node(Kernel& kernel, AffinityOf affinity_of) noexcept {
    constexpr int most_cpus = 8192;
    cpu_set_t cpus[most_cpus / CPU_SETSIZE] = {};
    const int saved = errno;
    const int failed = affinity_of(0, sizeof cpus, cpus);
    errno = saved;
    if (failed) return -1;
    NodeSet nodes;
    int left = CPU_COUNT_S(sizeof cpus, cpus);
    for (int cpu = 0; left > 0; ++cpu)
        if (CPU_ISSET_S(cpu, sizeof cpus, cpus)) {
            nodes.add(kernel.node_of_cpu(cpu));
            --left;
        }
    return nodes.count() == 1 ? nodes.first() : -1;
}

ThreadBinding record_threads(Kernel& kernel, const char* tasks, AffinityOf affinity_of, pid_t own) {
    ThreadBinding binding;
    DIR* folder = ::opendir(tasks);
    if (!folder) {
        binding.error = errno;
        return binding;
    }
    CpuSet cpus;
    for (const dirent* entry = ::readdir(folder); entry; entry = ::readdir(folder)) {
        const pid_t thread = std::atoi(entry->d_name);
        if (thread <= 0 || thread == own || HelperThread::is_ours(thread)) continue;
        if (const int error = cpus.read(thread, affinity_of)) {
            if (error == ESRCH) continue; // it has ended meanwhile
            binding.error = error;
            ++binding.unknown;
            continue;
        }
        const record::thread_row row = row_of(thread, cpus, kernel);
        record::append(row);
        ++binding.threads;
        binding.bound += row.bound != 0;
    }
    ::closedir(folder);
    return binding;
}

void say_binding(const ThreadBinding& binding) {
    const int all = binding.threads;
    const int loose = all - binding.bound;
    record::fact("threads", std::to_string(all + binding.unknown));
    record::fact("binding", all == 0             ? "not known"
                            : loose == 0         ? "bound"
                            : binding.bound == 0 ? "unbound"
                                                 : "partly bound");
    if (all == 0 || binding.unknown > 0)
        record::message(record::Level::note,
                        "where " + (all == 0 ? "the threads" : std::to_string(binding.unknown) + " threads") +
                            " may run could not be read: " + std::strerror(binding.error));
    if (loose > 0 && all > 1)
        record::message(
            record::Level::warning,
            std::to_string(loose) + " of " + std::to_string(all) +
                " threads may run on several nodes: each touch counts for the node where the thread runs "
                "at that time; bind them with --bind (OMP_PROC_BIND, OMP_PLACES)");
}

} // namespace homing
