// Tasks for the blocks of two arrays, made by one thread and run by any.
//
// Truth: a, b: no distribution (NONE): a block has another owner in every iteration.
#include "pattern.h"

enum { BLOCKS = 64 };

static long n; // words of each array
static word *a, *b;

static long begin_of(long block) { return n * block / BLOCKS; }

static long allocate(long bytes) {
    n = bytes / (2 * (long)sizeof(word));
    a = pattern_array(n);
    b = pattern_array(n);
    return 2 * n * (long)sizeof(word);
}

static void fill(void) {
#pragma omp for schedule(static)
    for (long i = 0; i < n; i++) {
        a[i] = (word)i;
        b[i] = 0;
    }
}

static void predict(long block, word number) {
    for (long i = begin_of(block); i < begin_of(block + 1); i++)
        b[i] = pattern_next(a[i] + number);
}

static void correct(long block) {
    for (long i = begin_of(block); i < begin_of(block + 1); i++)
        a[i] = b[i] + (i > 0 ? b[i - 1] : 0);
}

static void iterate(long number) {
#pragma omp parallel
#pragma omp single
    {
        for (long block = 0; block < BLOCKS; block++) {
#pragma omp task firstprivate(block, number)
            predict(block, (word)number);
        }
#pragma omp taskwait
        for (long block = 0; block < BLOCKS; block++) {
#pragma omp task firstprivate(block)
            correct(block);
        }
    }
}

static word checksum(void) { return pattern_sum(pattern_sum(0, a, n), b, n); }

int main(int argc, char** argv) {
    static const struct pattern tasks = {"pattern_tasks", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&tasks, argc, argv);
}
