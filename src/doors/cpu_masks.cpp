// CPU masks that the kernel reads or writes. A file of their own: the simulator has its own masks instead
// (simulator/cpu.cpp).
#include "doors/calls.hpp"

#include <pthread.h>
#include <sched.h>

HOMING_CALL3(sched_getaffinity, bytes(c, b))
HOMING_CALL3(sched_setaffinity, bytes(c, b))
HOMING_CALL3(pthread_getaffinity_np, bytes(c, b))
HOMING_CALL3(pthread_setaffinity_np, bytes(c, b))
