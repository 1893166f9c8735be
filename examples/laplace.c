/* Laplace's equation on a square, one edge of which is held at 1, by Jacobi's method. One thread initialises
 * the arrays, so that all their pages are on its node: the case that homing is for. */
/*   gcc -O2 -fopenmp laplace.c                  homing run -- ./a.out */
/*   homing cc gcc -O2 -g -fopenmp laplace.c     homing run --on sf15k -- ./a.out */
#include <stdio.h>
#include <stdlib.h>

int main(int arguments, char** argument) {
    const long n = arguments > 1 ? atol(argument[1]) : 1700; /* points a side */
    const int steps = arguments > 2 ? atoi(argument[2]) : 100;
    if (n < 3 || steps < 0) return 2;
    double* u = malloc((size_t)(n * n) * sizeof *u);
    double* v = malloc((size_t)(n * n) * sizeof *v);
    if (!u || !v) return 1;
    for (long i = 0; i < n * n; ++i)
        u[i] = v[i] = i < n;

    for (int step = 0; step < steps; ++step) {
#pragma omp parallel for schedule(static)
        for (long i = 1; i < n - 1; ++i)
            for (long j = 1; j < n - 1; ++j)
                v[i * n + j] =
                    (u[(i - 1) * n + j] + u[(i + 1) * n + j] + u[i * n + j - 1] + u[i * n + j + 1]) / 4;
        double* swap = u;
        u = v;
        v = swap;
    }
    double sum = 0;
    for (long i = 0; i < n * n; ++i)
        sum += u[i];
    printf("sum %.6f\n", sum);
    free(u);
    free(v);
    return 0;
}
