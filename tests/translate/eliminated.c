#include <stdio.h>
#define N 12
static double a[N][N + 1];
#pragma homing distribute a[cyclic][*]
int main(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= N; j++)
            a[i][j] = 1.0 / (1 + i + j) + 3 * (i == j);
    for (int k = 0; k < N; k++) {
        double f = a[k][k];
#pragma omp parallel for
        for (int i = 0; i < N; i++)
            if (i != k)
                for (int j = N; j >= k; j--)
                    a[i][j] -= a[i][k] * a[k][j] / f;
    }
    for (int i = 0; i < N; i++)
        printf("%.8f ", a[i][N] / a[i][i]);
    printf("\n");
}
