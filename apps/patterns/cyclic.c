// Loops whose chunks are dealt out to the threads in turn.
//
// Truth: a, b: DISTRIBUTE(CYCLIC(2048)) over all threads: chunks of 16 KiB. Arrays begin with a page, so that
// no page belongs to two threads: whichever came first would own it, and equal runs would differ.
#include "pattern.h"

#include <stdlib.h>

enum { CHUNK = 2048, PAGE = 4096 }; // words; bytes

static long n; // words of each array
static word *a, *b;

static long allocate(long bytes) {
    n = bytes / (2 * (long)sizeof(word));
    n -= n % CHUNK;
    a = aligned_alloc(PAGE, (size_t)n * sizeof *a);
    b = aligned_alloc(PAGE, (size_t)n * sizeof *b);
    if (a == NULL || b == NULL) app_error("not enough memory for the arrays");
    return 2 * n * (long)sizeof(word);
}

static void fill(void) {
#pragma omp for schedule(static, CHUNK)
    for (long i = 0; i < n; i++) {
        a[i] = (word)i;
        b[i] = 0;
    }
}

static void iterate(long number) {
#pragma omp parallel for schedule(static, CHUNK)
    for (long i = 0; i < n; i++)
        b[i] = pattern_next(a[i] + (word)number);
#pragma omp parallel for schedule(static, CHUNK)
    for (long i = 0; i < n; i++)
        a[i] = b[i] + (i > 0 ? b[i - 1] : 0);
}

static word checksum(void) { return pattern_sum(pattern_sum(0, a, n), b, n); }

int main(int argc, char** argv) {
    static const struct pattern cyclic = {"pattern_cyclic", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&cyclic, argc, argv);
}
