#include "kernel/balancing.hpp"

#include "base/raw_calls.hpp"

#include <fcntl.h>

namespace homing {

bool kernel_balances() noexcept {
    char text[8];
    if (raw::read_file("/proc/sys/kernel/numa_balancing", text, sizeof text) < 0)
        return raw::call(SYS_faccessat, AT_FDCWD, "/proc/sys/kernel", F_OK) != 0;
    const char first = text[0];
    return first != '0';
}

} // namespace homing
