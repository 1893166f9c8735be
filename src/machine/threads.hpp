// Where the threads of the process may run: threads bound to one node tell where their pages belong for good.
#pragma once

#include "kernel/kernel.hpp"

#include <cstddef>
#include <sched.h>
#include <sys/types.h>

namespace homing {

/// sched_getaffinity(2), or what plays it.
using AffinityOf = int (*)(pid_t thread, std::size_t bytes, cpu_set_t* cpus) noexcept;

/// How the threads of a process are bound.
struct ThreadBinding {
    int threads = 0; ///< of which it is known where they may run
    int bound = 0;   ///< of them, those that may run on one node only
    int unknown = 0; ///< threads of which it could not be read
    int error = 0;   ///< the errno of the last of those
};

/// Looks at every thread of the process, whose numbers are the names in the folder `tasks`, and records a row
/// for each of which it is known where it may run. Not at our own one, if there is one.
ThreadBinding record_threads(Kernel& kernel, const char* tasks = "/proc/self/task",
                             AffinityOf affinity_of = ::sched_getaffinity, pid_t own = 0);

/// The node, an index of the operating system's, to which the calling thread is bound. -1: it may run on
/// several, or it is not known
/// (on a kernel of more than 8,192 CPUs, which no distribution's is: no memory of the heap is taken).
int bound_node(Kernel& kernel, AffinityOf affinity_of = ::sched_getaffinity) noexcept;

/// The facts `threads` and `binding`, and what the user should know of them.
void say_binding(const ThreadBinding& binding);

} // namespace homing
