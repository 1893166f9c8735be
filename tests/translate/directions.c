// Alternating directions: the array is dealt out anew in a loop, in a branch, and passed on in between.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void along_rows(int n, double u[n + 2][n + 2]) {
#pragma omp parallel for
    for (int j = 1; j <= n; j++)
        for (int i = 1; i <= n; i++)
            u[i][j] = 0.5 * (u[i][j] + u[i - 1][j]);
}

int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 5;
    double(*u)[n + 2] = malloc(sizeof(double) * (size_t)(n + 2) * (size_t)(n + 2));
#pragma homing distribute u[block][*] extent(n + 2, n + 2)
    for (int i = 0; i < n + 2; i++)
        for (int j = 0; j < n + 2; j++)
            u[i][j] = sin(i * i + 3.0 * j);
    for (int t = 0; t < 3; t++) {
#pragma omp parallel for
        for (int i = 1; i <= n; i++)
            for (int j = 1; j <= n; j++)
                u[i][j] = 0.5 * (u[i][j] + u[i][j - 1]);
#pragma homing redistribute u[*][block]
        along_rows(n, u);
        if (t == 1) {
#pragma homing redistribute u[*][cyclic(2)]
#pragma omp parallel for
            for (int j = 1; j <= n; j++)
                for (int i = 1; i <= n; i++)
                    u[i][j] = u[i][j] + t;
#pragma homing redistribute u[*][block]
        }
#pragma homing redistribute u[block][*]
    }
    for (int i = 0; i < n + 2; i++)
        for (int j = 0; j < n + 2; j++)
            printf("%a\n", u[i][j]);
    free(u);
    return 0;
}
