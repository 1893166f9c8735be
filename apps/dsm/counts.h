// What a process did. Counted at the process that does it; messages and bytes at the sender.
#ifndef HOMING_APPS_DSM_COUNTS_H
#define HOMING_APPS_DSM_COUNTS_H

enum dsm_count {
    DSM_READ_FAULTS,    // reads of a page that is not valid here
    DSM_WRITE_FAULTS,   // writes to a page that is not writable here
    DSM_TWINS,          // copies of pages made before the first write
    DSM_DIFFS,          // diffs made of a page and its twin
    DSM_DIFF_BYTES,     // their size
    DSM_DIFFS_APPLIED,  // to pages of this process
    DSM_PAGES_FETCHED,  // whole pages, where there was no copy
    DSM_INTERVALS,      // that wrote something
    DSM_NOTICES,        // write notices of these intervals
    DSM_INVALIDATED,    // pages that notices of others made invalid
    DSM_PROTECTIONS,    // calls of mprotect
    DSM_BARRIERS,       // arrivals
    DSM_LOCKS_ACQUIRED, // with and without messages
    DSM_MESSAGES,
    DSM_BYTES,
    DSM_COUNTS
};

struct dsm_counts {
    long of[DSM_COUNTS];
};

// A line for each count: its sum over the processes, the largest of one process, and each process's.
void dsm_counts_print(const struct dsm_counts* counts, int processes);

#endif
