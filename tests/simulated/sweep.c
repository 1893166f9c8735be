// An array that one thread writes first, and all threads sweep again and again: its misses are known.
// sweep SWEEPS [reuse|mapped|short]
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { bytes = 1 << 20, count = bytes / sizeof(double) };

static double* fresh(void) {
    double* u = aligned_alloc(4096, bytes);
    return u;
}

int main(int argc, char** argv) {
    const int sweeps = argc > 1 ? atoi(argv[1]) : 4;
    const char* mode = argc > 2 ? argv[2] : "";
    double* u = fresh();
    if (strcmp(mode, "mapped") == 0)
        u = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < count; ++i)
        u[i] = i;
    if (strcmp(mode, "reuse") == 0) { // given back: the next owner's first touch places it anew
        free(u);
        u = fresh();
    }
    if (strcmp(mode, "mapped") == 0) madvise(u, bytes, MADV_DONTNEED);
    const int swept = strcmp(mode, "short") == 0 ? count / 32 : count;
    double sum = 0;
    for (int k = 0; k < sweeps; ++k) {
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int i = 0; i < swept; ++i) {
            u[i] += 1;
            sum += u[i];
        }
    }
    printf("%.17g\n", sum);
    return 0;
}
