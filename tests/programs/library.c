// A shared library with OpenMP code and static arrays of its own: loaded by plugin_host.c, by Python through
// ctypes, or linked, in which case its constructor and destructor run regions before and after main.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { words = 1 << 18 };
static uint64_t table[words], image[words];
static uint64_t* heap;

// One iteration of three regions; returns a checksum.
uint64_t library_step(int iteration) {
    uint64_t sum = 0;
    if (!heap) heap = (uint64_t*)calloc(words, sizeof *heap);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < words; ++i)
        table[i] = table[i] * 3 + (uint64_t)(i + iteration);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < words; ++i)
        image[i] ^= table[i ? i - 1 : words - 1] + heap[i];
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < words; ++i)
        sum += heap[i] = image[i] + 1;
    return sum;
}

uint64_t library_run(int iterations) {
    uint64_t total = 0;
    for (int i = 0; i < iterations; ++i)
        total = total * 31 + library_step(i);
    return total;
}

void library_free(void) {
    free(heap);
    heap = NULL;
}

#ifdef EARLY
__attribute__((constructor)) static void early(void) {
    printf("constructor %016llx\n", (unsigned long long)library_run(20));
    fflush(stdout);
}
__attribute__((destructor)) static void late(void) {
    printf("destructor %016llx\n", (unsigned long long)library_run(10));
    fflush(stdout);
}
#endif
