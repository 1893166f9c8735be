// Own elements and one that all parts read; the matrices are static. DIST is replaced.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define M 9
static double x[M][M], y[M][M];
#pragma homing distribute xDIST, yDIST

int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 5;
    int i;
    if (n > M) n = M;
#pragma omp parallel for private(i)
    for (int j = 0; j < n; j++)
        for (i = 0; i < n; i++) {
            x[j][i] = cos(i + 2.0 * j * j);
            y[j][i] = 0;
        }
#pragma omp parallel
    for (int k = 0; k < n; k++) {
        double pivot = x[k][k];
#pragma omp for
        for (int j = 0; j < n; j++) {
            const int q = j * 3;
            for (int i = 0; i < n; i++) {
                if (i == 1) continue;
                y[j][i] = y[j][i] + x[j][i] * x[k][0] / (2 + pivot) + q;
            }
        }
#pragma omp single
        x[k][k] += 1;
    }
    for (int j = 0; j < n; j++)
        for (i = 0; i < n; i++)
            printf("%a %a\n", x[j][i], y[j][i]);
    return 0;
}
