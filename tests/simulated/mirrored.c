// An array that each thread sweeps seven times where it touched it first, and once mirrored.
#include <stdlib.h>

enum { count = 1 << 18, rounds = 12 };

int main(void) {
    double* u = aligned_alloc(1 << 16, count * sizeof *u);
    if (!u) return 2;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i)
        u[i] = 1;
    for (int round = 0; round < rounds; ++round) {
        for (int sweep = 0; sweep < 7; ++sweep) {
#pragma omp parallel for schedule(static)
            for (long i = 0; i < count; ++i)
                u[i] += 1;
        }
#pragma omp parallel for schedule(static)
        for (long i = 0; i < count; ++i)
            u[count - 1 - i] *= 0.5;
    }
    return u[0] != u[count - 1];
}
