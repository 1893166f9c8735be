#include <stdio.h>
#define N 24
double a[N], b[N];
#pragma homing distribute a[block], b[block]
struct s {
    int x;
    double y;
};
int main(void) {
    int m = -1;
    struct s z = {0, 0};
#pragma omp parallel default(none) shared(a, b, m, z)
    {
#pragma omp for lastprivate(m, z)
#pragma homing on home(b[i])
        for (int i = 0; i < N; i += 5) {
            a[i] = i;
            b[i] = 1;
            m = i * 2;
            z.x = i;
            z.y = a[i] + 1;
        }
#pragma omp for lastprivate(m) nowait
#pragma homing on home(a[i])
        for (int i = N - 1; i > 3; i -= 2) {
            b[i] = 0;
            m += 0;
            m = i;
            a[i] = i;
        }
    }
    printf("%d %d %g\n", m, z.x, z.y);
    double s = 0;
    for (int k = 0; k < N; k++)
        s += a[k];
    unsigned q = 3;
    unsigned i;
#pragma omp parallel for lastprivate(i, q) default(none) shared(a)
#pragma homing on home(a[i])
    for (i = 2; i < N; i++) {
        a[i] = a[i] * 2;
        q = i;
    }
    printf("%g %u %u\n", s, i, q);
    return 0;
}
