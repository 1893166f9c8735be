// The entry points of libgomp that compilers before GCC 4.9 called, as old binaries and libraries still do.
#include "core.h"

extern void GOMP_parallel_start(void (*)(void*), void*, unsigned);
extern void GOMP_parallel_end(void);
extern void GOMP_parallel_loop_static_start(void (*)(void*), void*, unsigned, long, long, long, long);
extern _Bool GOMP_loop_static_next(long*, long*);
extern void GOMP_loop_end_nowait(void);

static uint64_t total;

static void body(void* salt) {
    const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const long first = CORE_WORDS * thread / threads, last = CORE_WORDS * (thread + 1) / threads;
    for (long at = first; at < last; ++at)
        core_b[at] += core_a[at] * 3 + (uint64_t)*(int*)salt;
}

static void loop(void* salt) {
    long first, last;
    uint64_t sum = 0;
    while (GOMP_loop_static_next(&first, &last))
        for (long at = first; at < last; ++at)
            sum += core_b[at] + (uint64_t)*(int*)salt;
    GOMP_loop_end_nowait();
    __atomic_fetch_add(&total, sum, __ATOMIC_RELAXED);
}

int main(void) {
    core_start();
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        GOMP_parallel_start(body, &i, 0);
        body(&i);
        GOMP_parallel_end();
        GOMP_parallel_loop_static_start(loop, &i, 0, 0, CORE_WORDS, 1, 0);
        loop(&i);
        GOMP_parallel_end();
    }
    printf("total %016llx\n", (unsigned long long)total);
    return core_end();
}
