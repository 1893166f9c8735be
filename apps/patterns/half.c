// A program that runs some of its regions on half of its threads.
//
// Truth: a, b: DISTRIBUTE(BLOCK) over all threads. c, d: DISTRIBUTE(BLOCK) over the first half of the
// threads.
#include "pattern.h"

static long n; // words of each array
static word *a, *b, *c, *d;

static long allocate(long bytes) {
    n = bytes / (4 * (long)sizeof(word));
    word** const arrays[] = {&a, &b, &c, &d};
    for (int k = 0; k < 4; k++)
        *arrays[k] = pattern_array(n);
    return 4 * n * (long)sizeof(word);
}

static int half_of(int threads) { return threads > 1 ? threads / 2 : 1; }

static void fill(void) {
#pragma omp for schedule(static)
    for (long i = 0; i < n; i++)
        a[i] = b[i] = (word)i;
    int half = half_of(omp_get_num_threads()), thread = omp_get_thread_num();
    for (long i = n * thread / half; thread < half && i < n * (thread + 1) / half; i++)
        c[i] = d[i] = (word)i;
}

static void step(word* from, word* to, word number, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) proc_bind(close)
    for (long i = 0; i < n; i++)
        to[i] = pattern_next(from[i] + number);
#pragma omp parallel for schedule(static) num_threads(threads) proc_bind(close)
    for (long i = 0; i < n; i++)
        from[i] = to[i] + (i > 0 ? to[i - 1] : 0);
}

static void iterate(long number) {
    step(a, b, (word)number, omp_get_max_threads());
    step(c, d, (word)number, half_of(omp_get_max_threads()));
}

static word checksum(void) {
    return pattern_sum(pattern_sum(pattern_sum(pattern_sum(0, a, n), b, n), c, n), d, n);
}

int main(int argc, char** argv) {
    static const struct pattern on_half = {"pattern_half", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&on_half, argc, argv);
}
