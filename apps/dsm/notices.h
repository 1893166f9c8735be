// Intervals and write notices. The records lie in the arena, once for all; a process may look at those that
// its vector clock covers, because it was sent those.
#ifndef HOMING_APPS_DSM_NOTICES_H
#define HOMING_APPS_DSM_NOTICES_H

#include "dsm.h"

#include <stdbool.h>
#include <stdint.h>

// Of each process the last interval that is known; intervals count from 1.
struct vector_clock {
    uint32_t of[DSM_MOST_PROCESSES];
};

struct interval;

// A process changed a page in an interval. Its diff is made when somebody asks for it, or when the process
// hears of another's changes to the page; what the process writes until then is in it, too.
struct notice {
    const struct interval* interval;
    struct notice* before; // of the same page and process
    struct notice* next;   // of the same interval
    long page;
    const void* diff; // NULL: not made yet
    uint32_t diff_bytes;
    uint32_t holders; // the processes that have the diff: a bit each
};

struct interval {
    int process;
    uint32_t index;
    struct vector_clock clock; // when it ended
    long notices;
    struct notice* first;
    struct interval* before; // of the same process
};

// Before the processes are made.
void notices_make(int processes, long pages);
// An interval of a process has ended that wrote these pages.
struct interval* interval_add(int process, const struct vector_clock* clock, const long* pages, long count);
// A process's last interval with an index up to this one; NULL: none.
struct interval* interval_up_to(int process, uint32_t index);
// A process's last notice for a page with an index up to this one; NULL: none.
struct notice* notice_up_to(long page, int process, uint32_t index);
// Numbers, notices included, that intervals after `from` up to `to` take in a message: of one process, or of
// all (-1).
long intervals_bytes(int process, const struct vector_clock* from, const struct vector_clock* to);
// Everything that the one knows, or more, is known to the other.
bool clock_covers(const struct vector_clock* clock, const struct notice* notice);
// Sorts notices so that none comes before one that its process had seen.
void notices_in_order(struct notice** notices, long count);

#endif
