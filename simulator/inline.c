// The callbacks of the most frequent accesses once more, as LLVM bitcode that `homing cc` gives to clang:
// they are inlined into the program. Everything else stays a call to callbacks.c.
#include "callbacks.h"

// Within a function of the program there is no return address that names the place: the slow path's own does.
#define HOMING_INLINE(name, write)                                                                           \
    __attribute__((always_inline)) HOMING_NOT_INSTRUMENTED void __tsan_##name(void* at);                     \
    void __tsan_##name(void* at) { homing_access((uintptr_t)at, write, 0); }
HOMING_INLINE(read1, 0)
HOMING_INLINE(read2, 0)
HOMING_INLINE(read4, 0)
HOMING_INLINE(read8, 0)
HOMING_INLINE(write1, 1)
HOMING_INLINE(write2, 1)
HOMING_INLINE(write4, 1)
HOMING_INLINE(write8, 1)
