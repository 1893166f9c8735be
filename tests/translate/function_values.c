/* Functions that work on parts, and elements beside them in the same statement; functions by pointers. */
#include <math.h>
#include <stdio.h>
#define N 41
static double a[N], b[N];
#pragma homing distribute a[block], b[block]
static double total(const double x[N], double w) {
#pragma homing distribute x[block]
    double t = 0;
#pragma omp parallel for reduction(+ : t)
    for (int i = 0; i < N; i++)
        t += x[i];
    return t * w;
}
static double norm(void) {
    double t = 0;
#pragma omp parallel for reduction(+ : t)
    for (int i = 0; i < N; i++)
        t += b[i];
    return t;
}
typedef double (*each_t)(double);
static double twice(double x) {
    return x * 2;
}
static void map(each_t f) {
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        a[i] = f(b[i]) - 40;
}
int main(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        a[i] = i;
        b[i] = 2 * i;
    }
    printf("total(a) %g %g\n", total(a, 2), a[3]);
    double s = total(a, 1) + b[7] + total(b, total(a, 1));
    b[2] = total(b, s) * 1e-3 + a[4];
    for (int k = 0; k < 3; k++) {
        a[k] += total(a, 1) / N;
        s = norm() - b[40];
    }
    printf("%g %g %g\n", s, norm() + b[1], a[2]);
    each_t table[] = {twice, fabs};
    for (int k = 0; k < 2; k++) {
        map(table[k]);
        printf("%g %g\n", a[0], a[N - 1]);
    }
    return 0;
}
