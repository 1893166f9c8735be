#include "counts.h"

#include <stdio.h>

static const char* const NAMES[DSM_COUNTS] = {
    [DSM_READ_FAULTS] = "read_faults",
    [DSM_WRITE_FAULTS] = "write_faults",
    [DSM_TWINS] = "twins",
    [DSM_DIFFS] = "diffs",
    [DSM_DIFF_BYTES] = "diff_bytes",
    [DSM_DIFFS_APPLIED] = "diffs_applied",
    [DSM_PAGES_FETCHED] = "pages_fetched",
    [DSM_INTERVALS] = "intervals",
    [DSM_NOTICES] = "notices",
    [DSM_INVALIDATED] = "invalidated",
    [DSM_PROTECTIONS] = "protections",
    [DSM_BARRIERS] = "barriers",
    [DSM_LOCKS_ACQUIRED] = "locks_acquired",
    [DSM_MESSAGES] = "messages",
    [DSM_BYTES] = "bytes",
};

void dsm_counts_print(const struct dsm_counts* counts, int processes) {
    for (int which = 0; which < DSM_COUNTS; which++) {
        long sum = 0, most = 0;
        for (int process = 0; process < processes; process++) {
            long one = counts[process].of[which];
            sum += one;
            if (one > most) most = one;
        }
        printf("count %s: %ld %ld of", NAMES[which], sum, most);
        for (int process = 0; process < processes; process++)
            printf(" %ld", counts[process].of[which]);
        printf("\n");
    }
}
