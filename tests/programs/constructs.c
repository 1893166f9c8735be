// The other ways into a region: every schedule of a combined loop, sections, teams, cancellation, ordered and
// doacross loops, if and num_threads clauses, copyprivate, threadprivate data, array reductions, target on
// the host.
#include "core.h"

static uint64_t local;
#pragma omp threadprivate(local)

static void loops(int i) {
    uint64_t *a = core_a, *b = core_b;
#pragma omp parallel for schedule(dynamic, 1000)
    for (long at = 0; at < CORE_WORDS; ++at)
        b[at] = a[at] + 1;
#pragma omp parallel for schedule(guided)
    for (long at = 0; at < CORE_WORDS; ++at)
        b[at] = b[at] * 3;
#pragma omp parallel for schedule(runtime)
    for (long at = 0; at < CORE_WORDS; ++at)
        b[at] ^= (uint64_t)i;
#pragma omp parallel for schedule(static, 512)
    for (long at = 0; at < CORE_WORDS; ++at)
        b[at] += a[at];
#pragma omp parallel for schedule(monotonic : dynamic, 700)
    for (long at = 0; at < CORE_WORDS; ++at)
        b[at] += 1;
#pragma omp parallel for schedule(nonmonotonic : guided, 64)
    for (long at = 0; at < CORE_WORDS; ++at)
        b[at] += 2;
#pragma omp parallel for if (i % 2) num_threads(2)
    for (long at = 0; at < CORE_WORDS; ++at)
        b[at] += 3;
#pragma omp parallel for collapse(2)
    for (long row = 0; row < 64; ++row)
        for (long at = 0; at < CORE_WORDS / 64; ++at)
            a[row * (CORE_WORDS / 64) + at] = b[row * (CORE_WORDS / 64) + at];
#pragma omp parallel for simd
    for (long at = 0; at < CORE_WORDS; ++at)
        a[at] += 5;
}

static uint64_t others(void) {
    uint64_t sum = 0, first = 0, second = 0, third = 0;
#pragma omp parallel sections
    {
#pragma omp section
        for (long at = 0; at < CORE_WORDS / 2; ++at)
            first += core_a[at];
#pragma omp section
        for (long at = CORE_WORDS / 2; at < CORE_WORDS; ++at)
            second += core_a[at];
#pragma omp section
        for (long at = 0; at < CORE_WORDS; at += 2)
            third += core_b[at];
    }
    sum = first * 3 + second * 5 + third * 7;
    uint64_t found = 0;
#pragma omp parallel num_threads(3)
    {
#pragma omp for
        for (long at = 0; at < CORE_WORDS; ++at) {
            if (core_a[at] == 12345) __atomic_store_n(&found, 1, __ATOMIC_RELAXED);
#pragma omp cancel for if (at == CORE_WORDS - 1)
        }
        uint64_t copied = 0;
#pragma omp single copyprivate(copied)
        copied = core_b[77];
        local = copied;
#pragma omp critical
        sum += 1;
#pragma omp barrier
#pragma omp masked
        sum += local;
    }
    uint64_t ordered = 0;
#pragma omp parallel for ordered schedule(static, 4)
    for (long at = 0; at < CORE_WORDS; at += 16384) {
        const uint64_t value = core_a[at];
#pragma omp ordered
        ordered = ordered * 3 + value;
    }
#pragma omp parallel for ordered(1) schedule(static, 1)
    for (long at = 1; at < 8; ++at) {
#pragma omp ordered depend(sink : at - 1)
        core_b[at] = core_b[at - 1] * 3 + (uint64_t)at;
#pragma omp ordered depend(source)
    }
    uint64_t bins[256]; // clang 19 races on an array section of a static array
    memset(bins, 0, sizeof bins);
#pragma omp parallel for reduction(+ : bins[ : 256])
    for (long at = 0; at < CORE_WORDS; ++at)
        bins[core_a[at] & 255] += core_a[at];
    for (int at = 0; at < 256; ++at)
        sum = sum * 3 + bins[at];
    uint64_t teams = 0;
#pragma omp teams num_teams(2) thread_limit(2) reduction(+ : teams)
    {
#pragma omp distribute parallel for reduction(+ : teams)
        for (long at = 0; at < CORE_WORDS; ++at)
            teams += core_b[at];
    }
    uint64_t target = 0;
#pragma omp target teams distribute parallel for map(tofrom : target) reduction(+ : target)
    for (long at = 0; at < 10000; ++at)
        target += (uint64_t)at * (uint64_t)at;
    return sum * 3 + found * 5 + ordered * 7 + teams * 11 + target;
}

int main(void) {
    core_start();
    uint64_t total = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        loops(i);
        if (i % 4 == 0) total = total * 3 + others();
    }
    printf("total %016llx\n", (unsigned long long)total);
    return core_end();
}
