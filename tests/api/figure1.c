// The calls of the UPMlib paper's Figure 1 in C and C++: the arrays are initialised by one thread, each
// iteration deals their planes out to all.
#include <homing/homing.h>

#include <stdio.h>
#include <stdlib.h>

enum { N = 64, UNKNOWNS = 5, PLANE = UNKNOWNS * N * N, STEPS = 20 };

static double *u, *rhs, *forcing;

static void compute_rhs(void) {
#pragma omp parallel for schedule(static)
    for (int k = 0; k < N; ++k)
        for (long i = (long)k * PLANE; i < (k + 1L) * PLANE; ++i)
            rhs[i] = forcing[i] * 2;
}

static void add(void) {
#pragma omp parallel for schedule(static)
    for (int k = 0; k < N; ++k)
        for (long i = (long)k * PLANE; i < (k + 1L) * PLANE; ++i)
            u[i] += rhs[i];
}

static double* array(double value) {
    double* made = (double*)malloc(sizeof(double) * PLANE * N);
    if (!made) exit(3);
    for (long i = 0; i < (long)PLANE * N; ++i)
        made[i] = value;
    return made;
}

int main(void) {
    const size_t size = sizeof(double) * PLANE * N;
    u = array(1);
    rhs = array(0);
    forcing = array(0.5);
    upmlib_init();
    upmlib_memrefcnt(u, size);
    upmlib_memrefcnt(rhs, size);
    upmlib_memrefcnt(forcing, size);
    for (int step = 1; step <= STEPS; ++step) {
        compute_rhs();
        add();
        upmlib_migrate_memory();
    }
    double sum = 0;
    for (long i = 0; i < (long)PLANE * N; ++i)
        sum += u[i];
    printf("sum %20.6f\n", sum);
    return 0;
}
