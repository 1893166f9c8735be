// Tasks over blocks of the arrays, with dependences, taskgroups and untied tasks; taskloop; task reductions.
#include "core.h"

enum { blocks = 64 };
static uint64_t tree(int depth, long first, long last) {
    if (depth == 0) {
        uint64_t sum = 0;
        for (long i = first; i < last; ++i)
            sum += core_c[i];
        return sum;
    }
    uint64_t left = 0, right = 0;
    const long middle = (first + last) / 2;
#pragma omp task shared(left)
    left = tree(depth - 1, first, middle);
#pragma omp task shared(right) untied
    right = tree(depth - 1, middle, last);
#pragma omp taskwait
    return left + right;
}

int main(void) {
    core_start();
    const long words = CORE_WORDS / blocks;
    uint64_t total = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel num_threads(3)
#pragma omp single
        {
            for (int block = 0; block < blocks; ++block) {
                uint64_t *a = core_a + block * words, *b = core_b + block * words;
#pragma omp task depend(out : a[0]) firstprivate(a)
                for (long at = 0; at < words; ++at)
                    a[at] ^= (uint64_t)(at + i);
#pragma omp task depend(in : a[0]) depend(out : b[0]) firstprivate(a, b)
                for (long at = 0; at < words; ++at)
                    b[at] = a[at] * 3;
            }
#pragma omp taskwait
            total = total * 3 + tree(4, 0, CORE_WORDS);
        }
        uint64_t sum = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
        {
#ifndef NO_TASKLOOP
#pragma omp taskloop grainsize(4) reduction(+ : sum)
#endif
            for (int block = 0; block < blocks; ++block)
                for (long at = 0; at < words; ++at)
                    sum += core_b[block * words + at];
        }
        total = total * 5 + sum;
#ifndef NO_TASKLOOP
        sum = 0;
#pragma omp parallel num_threads(3) reduction(task, + : sum)
        {
#pragma omp single
            for (int block = 0; block < blocks; block += 8)
#pragma omp task in_reduction(+ : sum) firstprivate(block)
                for (long at = 0; at < words; ++at)
                    sum += core_a[block * words + at];
        }
        total = total * 7 + sum;
#endif
    }
    printf("total %016llx\n", (unsigned long long)total);
    return core_end();
}
