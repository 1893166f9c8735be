#include <stdio.h>
#define N 24
static double a[N];
#pragma homing distribute a[block]
static double above;
static double twice(double x) { return 2 * x; }
int main(void) {
    long hits = 0;
    double s = 0, all = 1, extra = 2;
#pragma omp parallel reduction(+ : hits, all)
    {
        double own = 0, count[2] = {0};
#pragma omp for
        for (int i = 0; i < N; i++)
            a[i] = i % 5;
#pragma omp for reduction(+ : s)
        for (int i = 0; i < N; i++)
            s += a[i];
#pragma omp for
        for (int i = 0; i < N; i++)
            if (a[i] > 2) hits++, own += a[i], count[1] += 2;
#pragma omp for reduction(+ : s)
        for (int i = 0; i < N; i++)
            s += a[i];
        all += 3 * own - count[1];
#pragma omp atomic
        extra += own;
    }
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        a[i] = twice(a[i]);
#pragma omp atomic
        above += a[i];
    }
    printf("%g\n", above);
    printf("%g %ld %g %g %g\n", s, hits, a[7], all, extra);
}
