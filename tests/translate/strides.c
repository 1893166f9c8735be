// Neighbours of two arrays, loops downwards and in steps, writes into neighbours. DIST is replaced.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 5;
    double* x = malloc(sizeof(double) * (size_t)(n + 4));
    double* y = malloc(sizeof(double) * (size_t)(n + 4));
    double* z = malloc(sizeof(double) * (size_t)(n + 4));
#pragma homing distribute xDIST, yDIST, zDIST extent(n + 4)
    for (int i = 0; i < n + 4; i++) {
        x[i] = sin(i * i);
        y[i] = 0;
        z[i] = i;
    }
    for (int k = 1; k < 3; k++) {
#pragma omp parallel
        {
#pragma omp for
            for (int i = n; i >= 2; i--)
                y[i + 2] = x[i] + x[i - 2] - z[i] * z[i - 2];
#pragma omp for
            for (int i = 2; i < n; i += 2) {
                x[i] = y[i + 1];
                if (i % 3 == 0) z[i - 1] = y[i];
            }
#pragma omp for
            for (int i = n + 1; i > 2; i -= 3)
                if (i < 5)
                    z[i] = x[i - 1] * x[i + 1] + z[i];
                else
                    z[i] = 1;
#pragma omp for
            for (int i = 1; i <= n; ++i)
                y[i] = (x[i - 1] + z[i - 1]) * (x[i + 1] + z[i + 1]);
#pragma omp for
            for (int i = 1; i <= n; i += k)
                x[i] = y[i - 1] + k;
#pragma omp for
            for (int i = n; i > 1; i = i - k)
                z[i - 1] = y[i] - x[i];
        }
    }
    for (int i = 0; i < n + 4; i++)
        printf("%a %a %a\n", x[i], y[i], z[i]);
    free(x);
    free(y);
    free(z);
    return 0;
}
