#include <stdio.h>
#define N 24
static double l[N][N];
#pragma homing distribute l[cyclic(2)][cyclic(2)]
int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            l[i][j] = (i == j) ? N + 1 : 1.0 / (1 + i + j);
    for (int k = 0; k < N; k++) {
#pragma omp parallel for
#pragma homing on home(l[i][k])
        for (int i = k + 1; i < N; i++)
            l[i][k] = l[i][k] / l[k][k];
#pragma omp parallel for
#pragma homing nest(i, j), on home(l[i][j])
        for (int i = k + 1; i < N; i++)
            for (int j = k + 1; j < N; j++)
                l[i][j] -= l[i][k] * l[k][j];
    }
    double s = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            s += l[i][j];
    printf("%.10f\n", s);
    return 0;
}
