#include "kernel/threads_of_process.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace homing {
namespace {

/// Field 39 of stat, the CPU that the thread ran on last; -1 where it cannot be read. The name in the second
/// field may hold blanks and brackets: fields are counted behind the last bracket.
int last_cpu(int thread) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    char text[1024];
    const ssize_t length = ::read(file, text, sizeof text - 1);
    ::close(file);
    if (length <= 0) return -1;
    text[length] = 0;
    const char* at = std::strrchr(text, ')');
    constexpr int fields_behind_name = 37; // the state is the third field
    for (int field = 0; at && field < fields_behind_name; ++field)
        at = std::strchr(at + 1, ' ');
    return at ? std::atoi(at) : -1;
}

} // namespace

std::vector<Kernel::Thread> threads_of_process(const std::function<int(int cpu)>& node_of_cpu) {
    std::vector<Kernel::Thread> threads;
    DIR* folder = ::opendir("/proc/self/task");
    if (!folder) return threads;
    for (const dirent* entry = ::readdir(folder); entry; entry = ::readdir(folder)) {
        const int number = std::atoi(entry->d_name);
        if (number <= 0) continue;
        const int cpu = last_cpu(number);
        threads.push_back({number, cpu < 0 ? -1 : node_of_cpu(cpu)});
    }
    ::closedir(folder);
    std::ranges::sort(threads, {}, &Kernel::Thread::number);
    return threads;
}

} // namespace homing
