#include <stdio.h>
#include <string.h>
#define N 20
static double a[N][3], b[N][3];
static int k[N];
#pragma homing distribute a[block][*], b[block][*], k[block]
int main(void) {
    memset(a, 0, sizeof a);
    memset(k, 0, sizeof(k));
    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++)
        a[i][1] = i;
    memcpy(b, a, sizeof(b));
#pragma omp parallel for
    for (int i = 0; i < (int)(sizeof k / sizeof *k); i++)
        b[i][0] = a[i][1] + k[i];
    double s = 0;
    for (int i = 0; i < N; i++)
        s += b[i][0] * i + b[i][1];
    printf("%.1f %zu\n", s, sizeof b);
    return 0;
}
