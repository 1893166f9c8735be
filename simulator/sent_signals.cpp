// Signals that the program sends to itself: what would have ended it does so before the call returns, and not
// at the next access that is counted.
#include "hooks/export.hpp"
#include "interrupted.hpp"

#include <csignal>
#include <unistd.h>

namespace homing::simulator {
namespace {

/// At the end of the process a signal that came since the last access still decides how it ends.
__attribute__((destructor)) void leave() noexcept { end_if_signalled(); }

} // namespace
} // namespace homing::simulator

using homing::hooks::Real;
using homing::simulator::end_if_signalled;

#define SENDS(name, parameters, throws, ...)                                                                 \
    HOMING_EXPORT int name parameters throws {                                                               \
        static constinit Real<int parameters> real{#name};                                                   \
        const int result = real(__VA_ARGS__);                                                                \
        end_if_signalled();                                                                                  \
        return result;                                                                                       \
    }

extern "C" {

SENDS(raise, (int signal), noexcept, signal)
SENDS(kill, (pid_t process, int signal), noexcept, process, signal)
SENDS(killpg, (pid_t group, int signal), noexcept, group, signal)
SENDS(tgkill, (pid_t process, pid_t thread, int signal), , process, thread, signal)
SENDS(pthread_kill, (pthread_t thread, int signal), noexcept, thread, signal)
SENDS(sigqueue, (pid_t process, int signal, const sigval value), noexcept, process, signal, value)
SENDS(pthread_sigqueue, (pthread_t thread, int signal, const sigval value), noexcept, thread, signal, value)

} // extern "C"
