// On which CPU a program runs is pretended, as its pages are: whoever asks the C library (programs, oneTBB,
// homing's own locality domains) is told of the CPUs of the described machine, and a thread that binds itself
// is on the CPU that it chose. The OpenMP runtime alone sees the real computer: it would bind threads to CPUs
// that are not there, and where its threads run is known from OMP_PLACES.
#include "base/inside.hpp"
#include "hooks/export.hpp"
#include "machine/simulation.hpp"
#include "model.hpp"
#include "threads.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace homing::simulator {
namespace {

bool pretends(const void* caller) noexcept {
    return simulation() && !is_inside() && !is_openmp_runtime(caller);
}

/// Is `id`, of a process or a thread, the caller? Masks of others are the real ones.
bool is_caller(pid_t id) noexcept { return id == 0 || id == ::gettid(); }

/// As the system calls have it: EINVAL for a mask that is too small, or without a CPU that is there.
int tell_cpus(std::size_t bytes, cpu_set_t* set) noexcept {
    const cpu_set_t mine = cpus_of_caller();
    const auto needed = static_cast<std::size_t>(described().cpu_slots() + 7) / 8;
    if (bytes < std::min(needed, sizeof mine) || !set) return EINVAL;
    std::memset(set, 0, bytes);
    std::memcpy(set, &mine, std::min(bytes, sizeof mine));
    return 0;
}

int take_cpus(std::size_t bytes, const cpu_set_t* set) noexcept {
    if (!set) return EFAULT;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    std::memcpy(&cpus, set, std::min(bytes, sizeof cpus));
    return bind_caller(cpus) ? 0 : EINVAL;
}

int as_system_call(int error) noexcept {
    if (error == 0) return 0;
    errno = error;
    return -1;
}

} // namespace
} // namespace homing::simulator

using homing::hooks::Real;
using namespace homing::simulator;

#define HERE __builtin_return_address(0)

extern "C" {

HOMING_EXPORT int sched_getcpu() noexcept {
    static constinit Real<int()> real{"sched_getcpu"};
    const int cpu = homing::simulation() ? current_cpu() : -1;
    return cpu >= 0 ? cpu : real();
}

HOMING_EXPORT int sched_getaffinity(pid_t id, std::size_t bytes, cpu_set_t* set) noexcept {
    static constinit Real<int(pid_t, std::size_t, cpu_set_t*)> real{"sched_getaffinity"};
    // A process's mask is that of its first thread; who asks for its own process wants to know what it has.
    if (!pretends(HERE) || (!is_caller(id) && id != ::getpid())) return real(id, bytes, set);
    return as_system_call(tell_cpus(bytes, set));
}

HOMING_EXPORT int sched_setaffinity(pid_t id, std::size_t bytes, const cpu_set_t* set) noexcept {
    static constinit Real<int(pid_t, std::size_t, const cpu_set_t*)> real{"sched_setaffinity"};
    if (!pretends(HERE) || !is_caller(id)) return real(id, bytes, set);
    return as_system_call(take_cpus(bytes, set));
}

HOMING_EXPORT int pthread_getaffinity_np(pthread_t thread, std::size_t bytes, cpu_set_t* set) noexcept {
    static constinit Real<int(pthread_t, std::size_t, cpu_set_t*)> real{"pthread_getaffinity_np"};
    if (!pretends(HERE) || !::pthread_equal(thread, ::pthread_self())) return real(thread, bytes, set);
    return tell_cpus(bytes, set);
}

HOMING_EXPORT int pthread_setaffinity_np(pthread_t thread, std::size_t bytes, const cpu_set_t* set) noexcept {
    static constinit Real<int(pthread_t, std::size_t, const cpu_set_t*)> real{"pthread_setaffinity_np"};
    if (!pretends(HERE) || !::pthread_equal(thread, ::pthread_self())) return real(thread, bytes, set);
    return take_cpus(bytes, set);
}

HOMING_EXPORT long sysconf(int name) noexcept {
    static constinit Real<long(int)> real{"sysconf"};
    const bool processors = name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF;
    return processors && pretends(HERE) ? described().cpu_count() : real(name);
}

} // extern "C"
