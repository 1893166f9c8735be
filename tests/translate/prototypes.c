#include <stdio.h>
#include <stdlib.h>
#define M 14
static void relax(int n, double (*)[M], double b[][M]);
static double total(int, const double*);
void sweep(int n, double* x);
int main(void) {
    int n = 21;
    static double a[21][M], b[21][M];
    double* x = malloc(n * sizeof *x);
#pragma homing distribute x[block] extent(n), a[block][*], b[block][*]
    for (int i = 0; i < n; i++) {
        x[i] = i;
        for (int j = 0; j < M; j++)
            a[i][j] = b[i][j] = i * j;
    }
    for (int t = 0; t < 3; t++) {
        relax(n, a, b);
        relax(n, b, a);
    }
    double s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < M; j++)
            s += a[i][j];
#pragma omp parallel
    sweep(n, x);
    printf("%g %g\n", s, total(n, x));
    free(x);
}
static void relax(int n, double (*a)[M], double (*b)[M]) {
#pragma omp parallel for
#pragma homing on home(b[i][ : ])
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < M - 1; ++j)
            b[i][j] = (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]) * .25;
}
void sweep(int n, double* x) {
#pragma omp for
    for (int i = 0; i < n; i++)
        x[i] = 2 * x[i] + 1;
}
static double total(int n, const double* x) {
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < n; i++)
        s += x[i];
    return s;
}
