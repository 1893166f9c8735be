// What an instrumented program and the simulator share: one context for each thread, and the fast path of an
// access.
//
// The callbacks (callbacks.c) are linked into every program and shared object that `homing cc` builds; the
// simulator is preloaded by `homing run --on MACHINE`. Without it the program runs as usual. So this layout
// is an interface between separately built files: its version is part of the name of
// homing_simulator_enter_1.
#pragma once

#include <stdint.h>

/// The most entries of a filter; the simulator uses fewer where the modelled cache is small. 64 KiB: as the
/// first-level data cache of the UltraSPARC III. The larger it is, the faster the simulator, and the more of
/// the order in which the modelled cache's lines were used is hidden from it. NAS CG, class A, on the Origin
/// 2000 (4 MiB, 2 ways): misses are 0.1 % more than with 512 entries, 0.9 % with 2048; with 8192 13 to 20 %,
/// other ones in each run, for many entries were met by no later line, and what they held was never evicted.
#define HOMING_FILTER_LINES 1024
/// The filter works on lines of 64 bytes, whatever the machine's are (they are whole multiples of it).
#define HOMING_FILTER_SHIFT 6

#ifdef __cplusplus
extern "C" {
#endif

/// A thread's part in the fast path: a direct-mapped table of the 64-byte lines that it used last. It stands
/// for the first-level cache. What it holds is also in the thread's private cache of the model: the model
/// takes lines out when it evicts or invalidates them.
struct homing_context {
    int64_t left;  ///< accesses until the slow path must be asked whatever the filter says
    uint64_t mask; ///< entries of the filter in use (a power of two) - 1
    uint64_t filter[HOMING_FILTER_LINES]; ///< line << 1 | may be written without asking; ~0: empty
};

/// What the simulator gives to a module that asks for it.
struct homing_simulator {
    /// The calling thread's context. Null: this thread is not simulated.
    struct homing_context* (*attach)(void);
    /// An access that the filter did not know. write: 0 or 1; pc: where it is.
    void (*slow)(struct homing_context*, uintptr_t address, int write, const void* pc);
};

/// Exported by the simulator: null where it is not at work in this process.
typedef const struct homing_simulator* homing_simulator_enter_function(void);

#ifdef __cplusplus
}
#endif

static inline __attribute__((always_inline)) uint64_t homing_filter_slot(uint64_t line, uint64_t mask) {
    return ((line * 0x9e3779b97f4a7c15u) >> 40) & mask;
}
