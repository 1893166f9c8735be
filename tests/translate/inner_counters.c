/* Subscripts with the counter of a loop inside, and with constants that have names. */
#include <stdio.h>
#define R 3
#define N 40
static double u[N], v[N], c[R + 1] = {-2.5, 1.5, -.25, .125};
#pragma homing distribute u[block], v[block]
int main(void) {
    const int lo = R, hi = N - R;
#pragma omp parallel for
    for (int i = 0; i < N; ++i)
        u[i] = (i % 7) * .5, v[i] = u[i] - u[i];
    for (int t = 0; t < 4; ++t) {
#pragma omp parallel for
#pragma homing on home(v[i])
        for (int i = lo; i < hi; ++i) {
            double s = c[0] * u[i] + 1e-3 * (u[i + R] - u[i - lo]);
            for (int r = 1; r <= R; ++r)
                s += c[r] * (u[i - r] + u[i + r]);
            v[i] += s;
        }
#pragma omp parallel for
#pragma homing on home(u[i])
        for (int i = lo; i < hi; ++i)
            u[i] += .01 * v[i];
    }
    double s = 0;
    for (int i = 0; i < N; ++i)
        s += u[i];
    printf("%.12f\n", s);
    return 0;
}
