// setjmp and longjmp: out of serial code between the regions of an iteration, and within a thread of a
// region.
#include "core.h"
#include <setjmp.h>

static jmp_buf restart;
static int jumps;

static uint64_t search(jmp_buf out, long from, uint64_t limit) {
    for (long i = from;; i = (i + 1) % CORE_WORDS)
        if (core_a[i] > limit) longjmp(out, 1);
}

int main(void) {
    core_start();
    static volatile int i;
    volatile uint64_t seen = 0;
    i = 0;
    if (setjmp(restart)) ++jumps;
    while (i < CORE_ITERATIONS) {
        core_step(i);
        i = i + 1;
        uint64_t here = 0;
#pragma omp parallel reduction(+ : here)
        {
            jmp_buf out;
            if (setjmp(out) == 0) search(out, (long)i * 1000, UINT64_MAX / 2);
            here += core_read_share();
        }
        seen = seen + here;
        if (i % 3 == 0) longjmp(restart, 1);
    }
    printf("jumps %d seen %llx\n", jumps, (unsigned long long)seen);
    return core_end();
}
