// Values that each way through a construct writes before they are used, in loops whose inner one is divided.
#include <stdio.h>
#define N 23

static double u[N][N], v[N][N];
#pragma homing distribute u[*][block], v[*][block]

int main(void) {
    double t;
    int i, j;
#pragma omp parallel for private(i)
    for (j = 0; j < N; j++)
        for (i = 0; i < N; i++) {
            u[j][i] = i * i + 31 * j - i * j;
            v[j][i] = 0;
        }
#pragma omp parallel for private(i, t)
    for (j = 1; j < N; j++)
        for (i = 1; i < N; i++) {
            if (u[j][i] > 300)
                t = u[j][i - 1];
            else if (u[j][i] > 200)
                t = u[j - 1][i];
            else
                t = 1;
            v[j][i] = 2 * t;
        }
    for (j = 0; j < N; j++)
        for (i = 0; i < N; i++) printf("%.3f\n", v[j][i]);
    return 0;
}
