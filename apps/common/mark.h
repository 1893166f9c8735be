// Phase marks for what counts cache misses: the counter of the lab guest, and the simulator.
#ifndef HOMING_APPS_MARK_H
#define HOMING_APPS_MARK_H

// The phases that the counter keeps apart. The counter ignores everything that happens in phase 0.
enum homing_phase {
    HOMING_PHASE_NOT_COUNTED = 0,
    HOMING_PHASE_INITIALISATION = 1,
    HOMING_PHASE_FIRST_HALF = 2, // of the timed iterations
    HOMING_PHASE_LAST_HALF = 3
};

// Tells the counter that `phase` begins now: a store to byte 8 * phase of one page at an address that the
// counter knows, where the environment variable HOMING_LAB is set; and a call of the simulator, where it is
// loaded (`homing run --on MACHINE`). Call it outside of parallel regions. A phase outside 0 .. 511 is
// ignored.
void homing_mark(int phase);

#endif
