#include <stdio.h>
#define N 64
static double a[N], b[N];
#pragma homing distribute a[block], b[block]
static void sweep(int t) {
#pragma omp parallel for
    for (int i = 1; i < N - 1; i++)
        b[i] = (a[i - 1] + a[i + 1]) / 2 + t;
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        a[i] = b[i];
}
static double total(void) {
    double s = 0;
    for (int i = 0; i < N; i++)
        s += a[i];
    return s;
}
int main(void) {
    for (int i = 0; i < N; i++)
        a[i] = b[i] = i % 7;
    printf("%g\n", total());
    for (int t = 0; t < 3; t++) {
        sweep(t);
        if (t == 1) printf("%g\n", a[3]);
    }
    if (total() > 3) {
        printf("yes %g\n", a[N - 2]);
    }
    if (total() > 3)
        sweep(2);
    else
        printf("no\n");
    double s = 0;
    for (int i = 0; i < N; i++)
        s += a[i];
    printf("%.9f\n", s);
    return 0;
}
