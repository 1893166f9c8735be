// Two domains, each with a team of its own: an outer region of two threads, far from each other, and inner
// regions of half of all threads, near to each other.
//
// Truth: a, b of the first domain: DISTRIBUTE(BLOCK) over the first half of all threads; those of the second
// domain: over the other half. The runtime may make the threads of an inner team anew for every region.
#include "pattern.h"

enum { DOMAINS = 2 };

static long n; // words of an array of one domain
static word *a[DOMAINS], *b[DOMAINS];
static int inner_threads, outer_threads;

static long allocate(long bytes) {
    omp_set_max_active_levels(2);
    outer_threads = omp_get_max_threads() < DOMAINS ? 1 : DOMAINS;
    inner_threads = omp_get_max_threads() / outer_threads;
    n = bytes / (2 * DOMAINS * (long)sizeof(word));
    for (int domain = 0; domain < DOMAINS; domain++) {
        a[domain] = pattern_array(n);
        b[domain] = pattern_array(n);
    }
    return 2 * DOMAINS * n * (long)sizeof(word);
}

// The arrays of all domains, one after the other, are in blocks over all threads.
static void fill(void) {
#pragma omp for schedule(static)
    for (long i = 0; i < DOMAINS * n; i++) {
        a[i / n][i % n] = (word)i;
        b[i / n][i % n] = 0;
    }
}

static void step_domain(int domain, word number) {
    word *from = a[domain], *to = b[domain];
#pragma omp parallel for schedule(static) num_threads(inner_threads) proc_bind(close)
    for (long i = 0; i < n; i++)
        to[i] = pattern_next(from[i] + number);
#pragma omp parallel for schedule(static) num_threads(inner_threads) proc_bind(close)
    for (long i = 0; i < n; i++)
        from[i] = to[i] + (i > 0 ? to[i - 1] : 0);
}

static void iterate(long number) {
#pragma omp parallel for schedule(static) num_threads(outer_threads) proc_bind(spread)
    for (int domain = 0; domain < DOMAINS; domain++)
        step_domain(domain, (word)(number + domain));
}

static word checksum(void) {
    word sum = 0;
    for (int domain = 0; domain < DOMAINS; domain++)
        sum = pattern_sum(pattern_sum(sum, a[domain], n), b[domain], n);
    return sum;
}

int main(int argc, char** argv) {
    static const struct pattern nested = {"pattern_nested", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&nested, argc, argv);
}
