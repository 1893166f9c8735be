// The threads of this process, as /proc/self/task lists them.
#pragma once

#include "kernel/kernel.hpp"

#include <functional>
#include <vector>

namespace homing {

/// Ascending by number. A thread whose state cannot be read has no node. None where the folder cannot be
/// read.
std::vector<Kernel::Thread> threads_of_process(const std::function<int(int cpu)>& node_of_cpu);

} // namespace homing
