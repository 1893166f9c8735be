// On which CPU a program runs is pretended, as its pages are: whoever asks the C library (programs, and
// homing's own locality domains) is told the CPU of the described machine.
#include "doors/export.hpp"
#include "mechanisms/simulation.hpp"
#include "model.hpp"

#include <sched.h>

extern "C" HOMING_EXPORT int sched_getcpu() noexcept {
    static constinit homing::doors::Real<int()> real{"sched_getcpu"};
    const int cpu = homing::simulation() ? homing::simulator::current_cpu() : -1;
    return cpu >= 0 ? cpu : real();
}
