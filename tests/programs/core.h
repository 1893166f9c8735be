// What every program of this folder has in common: an iterative OpenMP core, long and large enough for homing
// to find its iteration and to observe it, and a checksum that does not depend on timing or on the number of
// threads.
//
// A program does its deed between or inside the regions of the core, says in stdout what it saw of it, and
// ends with core_end(). The harness compares stdout and status with and without homing, so nothing that is
// printed may depend on an address, a time or a process id.
#ifndef CORE_H
#define CORE_H

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORE_WORDS (1L << 18) // 2 MiB an array
#define CORE_ITERATIONS 40

static uint64_t* core_a;
static uint64_t* core_b;
static uint64_t core_c[CORE_WORDS];
static uint64_t core_sum;
static int core_wrong;

// A property that must hold with and without homing: a violation is printed and makes the exit status 1.
static inline void expect(int holds, const char* what) {
    if (holds) return;
    if (__atomic_fetch_add(&core_wrong, 1, __ATOMIC_RELAXED) < 20) printf("wrong: %s\n", what);
}

// Serial initialisation: all pages are first touched by one thread.
static inline void core_start_in(uint64_t* a, uint64_t* b) {
    core_a = a;
    core_b = b;
    for (long i = 0; i < CORE_WORDS; ++i) {
        a[i] = (uint64_t)i * 0x9e3779b97f4a7c15u;
        b[i] = 0;
        core_c[i] = (uint64_t)i;
    }
}

static inline void core_start(void) {
    uint64_t* a = (uint64_t*)malloc(CORE_WORDS * sizeof *a);
    uint64_t* b = (uint64_t*)malloc(CORE_WORDS * sizeof *b);
    if (!a || !b) abort();
    core_start_in(a, b);
}

// One outer iteration: four regions with the same block distribution.
static inline void core_step(int iteration) {
    uint64_t *a = core_a, *b = core_b, *c = core_c;
    uint64_t sum = 0;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CORE_WORDS; ++i)
        b[i] = a[i ? i - 1 : CORE_WORDS - 1] + 3 * a[i] + a[i + 1 < CORE_WORDS ? i + 1 : 0];
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CORE_WORDS; ++i)
        c[i] = (c[i] ^ (b[i] * 5)) + (uint64_t)iteration;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < CORE_WORDS; ++i)
        a[i] = c[i] + (b[i] >> 7);
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < CORE_WORDS; ++i)
        sum += a[i] ^ (uint64_t)i;
    core_sum = core_sum * 31 + sum;
}

// This thread's share of work inside a region of the program's own: reads, so that several may do it at once.
static inline uint64_t core_read_share(void) {
    const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const long first = CORE_WORDS * thread / threads, last = CORE_WORDS * (thread + 1) / threads;
    uint64_t sum = 0;
    for (long i = first; i < last; ++i)
        sum += core_a[i];
    return sum;
}

static inline void core_run(int iterations) {
    for (int i = 0; i < iterations; ++i)
        core_step(i);
}

static inline int core_end(void) {
    printf("checksum %016llx\n", (unsigned long long)core_sum);
    fflush(stdout);
    return core_wrong != 0;
}

#endif
