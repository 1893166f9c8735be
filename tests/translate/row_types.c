#include <stdio.h>
#include <stdlib.h>
#define N 24
#define M 5
typedef double row[M];
typedef row grid[N];
static grid u;
static row w[N], *keep;
#pragma homing distribute u[block][*], w[block][*]
static void step(row* x, const grid y, int n) {
#pragma homing distribute x[block][*] extent(n, M)
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++)
        for (int j = 0; j < M; j++)
            x[i][j] = (y[i - 1][j] + y[i + 1][j]) / 2;
}
int main(void) {
    row* restrict c = calloc(N, sizeof *c), tmp = {1, 2, 3};
    keep = &tmp;
#pragma homing distribute c[block][*] extent(N, M)
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            u[i][j] = i * j, w[i][j] = i + j, c[i][j] = 0;
    step(w, u, N);
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            c[i][j] = w[i][j] + tmp[j] * (*keep)[1];
    printf("%.2f %.2f %zu\n", c[5][2], c[N - 1][1], sizeof(row));
    free(c);
    return 0;
}
