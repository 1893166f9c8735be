// Nested regions: two levels over the arrays, and a region inside each task.
#include "core.h"

int main(void) {
    omp_set_max_active_levels(3);
    core_start();
    uint64_t total = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        uint64_t sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
        {
            const int half = omp_get_thread_num();
            uint64_t mine = 0;
            uint64_t* b = core_b + half * (CORE_WORDS / 2);
#pragma omp parallel for num_threads(2) reduction(+ : mine) schedule(static)
            for (long at = 0; at < CORE_WORDS / 2; ++at) {
                b[at] = b[at] * 3 + (uint64_t)(half + i);
                mine += b[at];
            }
#pragma omp parallel num_threads(2) reduction(+ : mine)
            {
                uint64_t deepest = 0;
#pragma omp parallel for num_threads(2) reduction(+ : deepest)
                for (long at = 0; at < 4096; ++at)
                    deepest += core_c[at];
                mine += deepest;
            }
            sum += mine;
        }
        total = total * 3 + sum;
    }
    printf("total %016llx\n", (unsigned long long)total);
    return core_end();
}
