// Each process's view of the pages: which are valid, twins, faults, diffs fetched and applied.
#ifndef HOMING_APPS_DSM_PAGES_H
#define HOMING_APPS_DSM_PAGES_H

#include "counts.h"
#include "notices.h"
#include "virtual_time.h"

#include <stdbool.h>

// What everybody may look at of a process.
struct process {
    struct vector_clock clock;
    struct dsm_counts counts;
    struct virtual_time time;
};

// Before the processes are made; then in each.
void pages_make(int processes, long pages, bool eager);
void pages_join(int me);

struct process* pages_process(int process);
void pages_count(int process, enum dsm_count what, long times);
// A message is sent; the time that it takes is the caller's matter.
void pages_message(int sender, long bytes);

// The caller's turn: what others changed of its pages' protection meanwhile is done.
void pages_resume(int me);
// The process's changes since its last interval become an interval with write notices.
void pages_end_interval(int process);
// The caller hears of all intervals up to these: pages that others changed are not valid here any more.
void pages_hear_of(int me, const struct vector_clock* limit);

#endif
