// Predicted times: each process has a clock that goes on by what its work, faults, twins, diffs and messages
// would take on the machine that a file of costs describes; who waits takes over the clock of whom it waits
// for. Three clocks at once, by three sets of costs: little is known of old machines.
//
// A file of costs has a line "NAME FIRST SECOND THIRD" for each cost, in microseconds.
#ifndef HOMING_APPS_DSM_VIRTUAL_TIME_H
#define HOMING_APPS_DSM_VIRTUAL_TIME_H

enum { VIRTUAL_CLOCKS = 3 };

enum virtual_cost {
    COST_WORK,      // of one unit of dsm_work
    COST_FAULT,     // the signal for a page fault, its handler and return
    COST_PROTECT,   // one call of mprotect
    COST_TWIN,      // copying a page
    COST_DIFF,      // comparing a page with its twin
    COST_APPLY,     // a byte of a diff that is written into a page
    COST_ROUNDTRIP, // the shortest message to another process and its answer, interrupt included
    COST_SERVE,     // what the other process loses by being asked
    COST_BYTE,      // of a message
    COST_CLIENT,    // of a barrier: what the manager takes for one process
    VIRTUAL_COSTS
};

struct virtual_time {
    double of[VIRTUAL_CLOCKS];
};

// Before the processes are made. NULL: no time passes.
void virtual_time_read(const char* file);
void virtual_add(struct virtual_time* clock, enum virtual_cost cost, double times);
// The later one of both.
void virtual_wait(struct virtual_time* clock, const struct virtual_time* other);

#endif
