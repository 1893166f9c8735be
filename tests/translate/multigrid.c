// Loops over every second or third element go to the owners of those: restriction and prolongation.
#include <stdio.h>
#define N 49
#define M 25
static double u[N][N], c[M][M], w[N];
#pragma homing distribute u[block][*], c[block][*], w[block]

int main(void) {
    double s = 0;
    int last = 0;
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        w[i] = i % 7;
        for (int j = 0; j < N; j++)
            u[i][j] = i + 0.5 * j;
    }
    for (int k = 0; k < 3; k++) {
#pragma omp parallel for
        for (int i = 1; i < M - 1; i++)
            for (int j = 1; j < M - 1; j++)
                c[i][j] = 0.5 * u[2 * i][2 * j] + 0.25 * (u[2 * i - 1][2 * j] + u[2 * i + 1][2 * j]);
#pragma omp parallel for
        for (unsigned i = 0; i < M - 1; i++)
            for (int j = 0; j < M - 1; j++) {
                u[2 * i][2 * j] += c[i][j];
                u[2 * i + 1][2 * j] = 0.5 * (c[i][j] + c[i + 1][j]) + u[2 * i][2 * j + 1];
            }
#pragma omp parallel for
#pragma homing on home(w[i * 3])
        for (int i = (N - 2) / 3; i > 0; i--)
            w[3 * i + 1] = w[3 * i] + w[3 * i - 1];
#pragma omp parallel for lastprivate(last) reduction(+ : s)
        for (int i = 1; i < M - 1; i += 2) {
            w[2 * i] = 0.5 * (w[2 * i - 1] + w[2 * i + 1]);
            s += w[2 * i];
            last = 5 * i;
        }
    }
    for (int i = 0; i < N; i++)
        s += w[i] * u[i][i / 2];
    printf("%.14g %d\n", s, last);
    return 0;
}
