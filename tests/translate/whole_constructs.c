#include <stdio.h>
#define N 20
static double a[N], b[N];
#pragma homing distribute a[block], b[block]
int main(void) {
    int i;
    double s = 0, q = 0;
#pragma omp parallel
    {
#pragma omp for
        for (i = 0; i < N; i++) {
            a[i] = i;
            b[i] = 1;
        }
#pragma omp sections
        {
#pragma omp section
#pragma homing on home(a[0])
            {
                a[0] = a[N - 1];
                a[1] += 1;
            }
#pragma omp section
            b[N - 1] = 7;
        }
#pragma omp for ordered schedule(dynamic, 2)
        for (i = N - 2; i >= 0; i--) {
#pragma omp ordered
            {
                b[i] = b[i + 1] / 2 + a[i];
                s += b[i];
                printf("%d %g\n", i, b[i]);
            }
        }
#pragma omp for reduction(+ : q)
        for (i = 0; i < N; i++) {
            a[i] += b[i];
            q += a[i];
        }
    }
    for (i = 0; i < N; i++)
        s += a[i] * b[i];
    printf("%g %g\n", s, q);
}
