#include <stdio.h>
#define N 24
static double a[N];
#pragma homing distribute a[block]
int main(void) {
    long hits = 0;
    double s = 0;
#pragma omp parallel reduction(+ : hits)
    {
#pragma omp for
        for (int i = 0; i < N; i++)
            a[i] = i % 5;
#pragma omp for reduction(+ : s)
        for (int i = 0; i < N; i++)
            s += a[i];
#pragma omp for
        for (int i = 0; i < N; i++)
            if (a[i] > 2) hits++;
#pragma omp for reduction(+ : s)
        for (int i = 0; i < N; i++)
            s += a[i];
    }
    printf("%g %ld %g\n", s, hits, a[7]);
}
