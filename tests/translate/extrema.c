/* Extrema that are kept with where they are: argmax and argmin. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#define N 37
static double a[N][N];
#pragma homing distribute a[block][*]
typedef struct {
    double v;
    int i, j;
} hit;
static double f(double x) { return fabs(x - 3.0); }
int main(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = ((i * 31 + j * 17) % 101) - 50.0;
    double best = -DBL_MAX;
    int bi = -1, bj = -1;
#pragma omp parallel
    {
        double mine = -DBL_MAX;
        int mi = -1, mj = -1;
#pragma omp for nowait
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                if (a[i][j] > mine || (a[i][j] == mine && i < mi)) {
                    mine = a[i][j];
                    mi = i;
                    mj = j;
                }
#pragma omp critical
        if (mine > best || (mine == best && mi < bi)) {
            best = mine;
            bi = mi;
            bj = mj;
        }
    }
    printf("%g %d %d\n", best, bi, bj);
    hit low = {1e30, -1, -1};
#pragma omp parallel for schedule(static)
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double v = f(a[i][j] + 0.01 * i + 0.0003 * j);
            if (v < low.v) {
#pragma omp critical
                {
                    if (v < low.v) {
                        low.v = v;
                        low.i = i;
                        low.j = j;
                    }
                }
            }
        }
    printf("%g %d %d\n", low.v, low.i, low.j);
    float top[2] = {-1e9f, 0};
#pragma omp parallel
    {
#pragma omp for
        for (int i = 0; i < N; i++) {
            float s = 0;
            for (int j = 0; j < N; j++)
                s += a[i][j] * (1 + i);
#pragma omp critical(x)
            if (top[0] < s) {
                top[0] = s;
                top[1] = i;
            }
        }
#pragma omp single
        printf("%g %g\n", top[0], top[1]);
    }
    unsigned long m = 0;
    int at = 0, n = 0;
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        unsigned long k = (i * 7919ul + 13) % 1009;
        a[i][0] = k;
#pragma omp critical
        {
            n += 1;
            if (k > m) {
                m = k;
                at = i;
            }
        }
    }
    printf("%lu %d %d\n", m, at, n);
    return 0;
}
