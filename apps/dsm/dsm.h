// Shared memory between processes by pages, after TreadMarks: lazy release consistency, several writers a
// page, twins and diffs, diffs made only when they are asked for. An instrument: what it is for are its
// counts, which are the same in any two runs.
//
// The protocol follows, as far as they tell it, Keleher, Dwarkadas, Cox, Zwaenepoel, "TreadMarks: Distributed
// Shared Memory on Standard Workstations and Operating Systems", USENIX Winter 1994; Amza et al.,
// "TreadMarks: Shared Memory Computing on Networks of Workstations", IEEE Computer 29(2), 1996; and the
// algorithm in Costa et al., "Lightweight Logging for Lazy Release Consistent Distributed Shared Memory",
// OSDI 1996.
//
// Each process has its own copy of each page, protected by mprotect. What others have to know of it (twins,
// diffs, write notices) lies in memory that all share: it stands for the network, and each message that
// TreadMarks would send is counted with its size (wire.h). One process runs at a time (turns.h), so that a
// message always finds its receiver in the same state; otherwise a diff that is asked for while its page is
// written would have a size that nobody can foretell. Diffs are never thrown away (TreadMarks collects them
// where memory is short).
#ifndef HOMING_APPS_DSM_H
#define HOMING_APPS_DSM_H

#include <stdbool.h>
#include <stddef.h>

enum { DSM_PAGE_BYTES = 4096, DSM_MOST_PROCESSES = 32, DSM_LOCKS = 16 };

// lazy: a diff is made when it is asked for, or when another's changes to its page become known; what is
// written again until then needs no fault, twin or notice (as published). eager: at the end of each interval
// all pages that were written get their diffs and are protected again, so that every interval tells of all
// its pages.
enum dsm_diffs { DSM_LAZY, DSM_EAGER };

struct dsm_options {
    int processes;
    enum dsm_diffs diffs;
    const char* costs; // a file for virtual_time.h, or NULL
};

// Starts the processes with `bytes` of shared memory, all zero. All return from it; the caller is process 0.
void dsm_start(const struct dsm_options* options, size_t bytes);
int dsm_me(void);
int dsm_processes(void);

// The next whole pages of the shared memory. All processes make the same calls in the same order.
void* dsm_allocate(size_t bytes);

void dsm_barrier(void);
void dsm_acquire(int lock);
void dsm_release(int lock);

// All processes: what is counted and timed lies between these two. Each is a barrier that is not counted.
void dsm_measure_begin(void);
void dsm_measure_end(void);
// The caller has computed so many points, or whatever the costs' `work` is the time of.
void dsm_work(double units);

// All processes: the last call. Process 0 returns when all others have called it, and prints counts and
// times.
void dsm_end(bool print);
// The same, but all processes end except process 0, which says what it found out.
void dsm_finish(bool same_as_serial);

#endif
