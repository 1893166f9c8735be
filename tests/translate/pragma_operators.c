#include <stdio.h>
#define N 40
#define STR(x) #x
#define DO_PRAGMA(x) _Pragma(#x)
#define PRAGMA(...) DO_PRAGMA(__VA_ARGS__)
#define PARALLEL_FOR PRAGMA(omp parallel for)
#define EACH(i, last) PARALLEL_FOR for (int i = 1; i < (last); i++)
static double a[N], b[N];
#pragma homing distribute a[block], b[block]
int main(void) {
    double t = 0;
    PARALLEL_FOR
    for (int i = 0; i < N; i++) {
        a[i] = i;
        b[i] = 0;
    }
    PRAGMA(omp parallel for reduction(+ : t) schedule(static))
    for (int i = 1; i < N - 1; i++) {
        b[i] = a[i - 1] + a[i + 1];
        t += b[i];
    }
    _Pragma("GCC ivdep") for (int i = 0; i < 3; i++) t += i;
    // clang-format off
    { _Pragma("omp parallel for") for (int i = 1; i < N - 1; i++) b[i] *= 2; }
    // clang-format on
    EACH (i, N - 1)
        b[i] += a[i - 1];
    double s = 0;
    for (int i = 0; i < N; i++)
        s += b[i] + a[i];
    printf("%.2f %.2f %d\n", s, t, __LINE__);
    return 0;
}
