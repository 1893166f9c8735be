// CPU numbers and masks that the kernel reads or writes. A file of their own: the simulator answers these
// calls for its own CPUs instead (simulator/cpu.cpp, simulator/policies.cpp).
#include "hooks/syscalls/calls.hpp"

#include <pthread.h>
#include <sched.h>

#if __GLIBC_PREREQ(2, 29)
HOMING_CALL2(getcpu, object(a), object(b))
#endif
HOMING_CALL3(sched_getaffinity, bytes(c, b))
HOMING_CALL3(sched_setaffinity, bytes(c, b))
HOMING_CALL3(pthread_getaffinity_np, bytes(c, b))
HOMING_CALL3(pthread_setaffinity_np, bytes(c, b))
