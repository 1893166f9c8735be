// CPU masks that the kernel writes into memory which a window may have protected: the call is made again when
// it fails with EFAULT while one is open (guards.cpp says why). A file of its own: the simulator has its own
// masks instead (simulator/cpu.cpp).
#include "doors/export.hpp"
#include "references/windows.hpp"

#include <cerrno>
#include <pthread.h>
#include <sched.h>

namespace {

/// Is it worth calling again after this error? Then the window has been given up.
bool give_up_window(int error) noexcept {
    homing::Windows* windows = homing::active_windows.load(std::memory_order_acquire);
    if (error != EFAULT || !windows) return false;
    windows->abandon_and_wait();
    return true;
}

} // namespace

extern "C" {

HOMING_EXPORT int sched_getaffinity(pid_t id, size_t n, cpu_set_t* out) noexcept {
    static constinit homing::doors::Real<int(pid_t, size_t, cpu_set_t*)> real{"sched_getaffinity"};
    const int before = errno;
    const int result = real(id, n, out);
    if (result >= 0 || !give_up_window(errno)) return result;
    errno = before;
    return real(id, n, out);
}

// This one gives the error back instead of setting errno.
HOMING_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t n, cpu_set_t* out) noexcept {
    static constinit homing::doors::Real<int(pthread_t, size_t, cpu_set_t*)> real{"pthread_getaffinity_np"};
    const int error = real(thread, n, out);
    return give_up_window(error) ? real(thread, n, out) : error;
}

} // extern "C"
