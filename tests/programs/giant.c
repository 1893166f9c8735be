// One parallel region for the whole run: only its barriers tell where an iteration ends.
//
// barriers | singles (all serial work in a single construct) | pthread (no OpenMP barrier: one of its own)
#include "core.h"
#include <pthread.h>

static pthread_barrier_t own;

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "barriers";
    core_start();
    pthread_barrier_init(&own, NULL, 3);
    uint64_t total = 0, sum = 0;
    const int mine = strcmp(how, "pthread") == 0;
#pragma omp parallel num_threads(3)
    for (int i = 0; i < 2 * CORE_ITERATIONS; ++i) {
        const int thread = omp_get_thread_num();
        const long first = CORE_WORDS * thread / 3, last = CORE_WORDS * (thread + 1) / 3;
        for (long at = first; at < last; ++at)
            core_b[at] = core_a[at] * 3 + core_a[at ? at - 1 : CORE_WORDS - 1];
        if (mine)
            pthread_barrier_wait(&own);
        else {
#pragma omp barrier
        }
        uint64_t part = 0;
        for (long at = first; at < last; ++at)
            part += core_a[at] = core_b[at] ^ (uint64_t)i;
        __atomic_fetch_add(&sum, part, __ATOMIC_RELAXED);
        if (mine) {
            pthread_barrier_wait(&own);
            if (thread == 0) {
                total = total * 3 + sum;
                sum = 0;
            }
            pthread_barrier_wait(&own);
        } else if (strcmp(how, "singles") == 0) {
#pragma omp barrier
#pragma omp single
            {
                total = total * 3 + sum;
                sum = 0;
            }
        } else {
#pragma omp barrier
#pragma omp master
            {
                total = total * 3 + sum;
                sum = 0;
            }
#pragma omp barrier
        }
    }
    printf("total %016llx\n", (unsigned long long)total);
    return core_end();
}
