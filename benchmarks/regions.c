// What an empty parallel region costs, in two kinds of programs:
//
//     regions settled ITERATIONS MIB     an outer iteration is one sweep over an array of MIB MiB and 7 empty
//     regions regions searching ITERATIONS MIB   the same, but which of 16 empty regions comes next is
//     random: nothing repeats
//
// prints "ns ITERATION..." with the mean time of an empty region in each outer iteration, in nanoseconds.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { empty_regions = 7, kinds = 16 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static uint64_t random_state = 88172645463325252u;
static unsigned next_random(void) { // xorshift64
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33);
}

// Each is a function of its own, that is, another region.
#define EMPTY(number)                                                                                        \
    static void empty_##number(void) {                                                                       \
        _Pragma("omp parallel") { __asm__ volatile("" ::"r"(number) : "memory"); }                           \
    }
EMPTY(0)
EMPTY(1)
EMPTY(2)
EMPTY(3)
EMPTY(4)
EMPTY(5)
EMPTY(6)
EMPTY(7)
EMPTY(8)
EMPTY(9)
EMPTY(10)
EMPTY(11)
EMPTY(12)
EMPTY(13)
EMPTY(14)
EMPTY(15)
static void (*const empty[kinds])(void) = {empty_0,  empty_1,  empty_2,  empty_3, empty_4,  empty_5,
                                           empty_6,  empty_7,  empty_8,  empty_9, empty_10, empty_11,
                                           empty_12, empty_13, empty_14, empty_15};

static void sweep(double* array, long count) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i)
        array[i] += 1;
}

int main(int count, char** words) {
    const int settled = count == 4 && strcmp(words[1], "settled") == 0;
    const int searching = count == 4 && strcmp(words[1], "searching") == 0;
    const int iterations = count == 4 ? atoi(words[2]) : 0;
    const long elements = count == 4 ? atol(words[3]) * (1 << 20) / (long)sizeof(double) : 0;
    if ((!settled && !searching) || iterations < 1 || elements < 1) {
        fprintf(stderr, "usage: regions settled|searching ITERATIONS MIB\n");
        return 2;
    }
    double* array = calloc((size_t)elements, sizeof *array);
    double* seconds = calloc((size_t)iterations, sizeof *seconds);
    if (!array || !seconds) {
        fprintf(stderr, "regions: out of memory\n");
        return 1;
    }
    for (long i = 0; i < elements; ++i)
        array[i] = 1;
    for (int iteration = 0; iteration < iterations; ++iteration) {
        unsigned chosen[empty_regions];
        for (int i = 0; i < empty_regions; ++i)
            chosen[i] = settled ? (unsigned)i : next_random() % kinds;
        sweep(array, elements);
        const double begin = now();
        for (int i = 0; i < empty_regions; ++i)
            empty[chosen[i]]();
        seconds[iteration] = (now() - begin) / empty_regions;
    }
    printf("ns");
    for (int iteration = 0; iteration < iterations; ++iteration)
        printf(" %.1f", 1e9 * seconds[iteration]);
    printf("\n");
    free(array);
    free(seconds);
    return 0;
}
