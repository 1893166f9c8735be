// Barriers and locks: who is told what, and how many messages it takes.
#ifndef HOMING_APPS_DSM_SYNCHRONISATION_H
#define HOMING_APPS_DSM_SYNCHRONISATION_H

#include "counts.h"
#include "dsm.h"
#include "virtual_time.h"

// What happens to the counts when the last process arrives at a barrier.
enum barrier_kind { BARRIER_ORDINARY, BARRIER_BEGINS_MEASURE, BARRIER_ENDS_MEASURE };

// What was counted and timed, by process, when the measure ended.
struct measured {
    struct dsm_counts counts[DSM_MOST_PROCESSES];
    struct virtual_time time[DSM_MOST_PROCESSES];
};

// Before the processes are made.
void synchronisation_make(int processes);
void synchronise(int me, enum barrier_kind kind);
void lock_acquire(int me, int lock);
void lock_release(int me, int lock);
const struct measured* synchronisation_measured(void);

#endif
