// Neighbours in all directions, functions in serial code and in a region, reductions, a single on whole
// arrays. DIST is replaced.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void smooth(int n, double x[n + 2][n + 2], double y[n + 2][n + 2], double* total) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++) {
            y[i][j] = 0.2 * (x[i][j] + x[i - 1][j - 1] + x[i + 1][j + 1] + x[i - 1][j + 1] + x[i + 1][j - 1]);
            sum += y[i][j];
        }
    *total += sum;
}

static void scale(int n, double x[n + 2][n + 2], double by) {
#pragma omp for
    for (int i = n; i >= 1; --i)
        for (int j = 1; j < n + 1; j++)
            x[i][j] *= by;
}

static void dump(int n, double (*x)[n + 2]) {
    for (int i = 0; i < n + 2; i++)
        for (int j = 0; j < n + 2; j++)
            printf("%a%c", x[i][j], j == n + 1 ? '\n' : ' ');
}

int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 5;
    double(*x)[n + 2] = malloc(sizeof(double) * (size_t)(n + 2) * (size_t)(n + 2));
    double(*y)[n + 2] = malloc(sizeof(double) * (size_t)(n + 2) * (size_t)(n + 2));
#pragma homing distribute xDIST, yDIST extent(n + 2, n + 2)
    if (!x || y == NULL) return 1;
    for (int i = 0; i < n + 2; i++)
        for (int j = 0; j < n + 2; j++)
            y[i][j] = x[i][j] = sin(i * i + 3.0 * j);
    double total = 0, top = -1e300;
    for (int k = 0; k < 3; k++) {
        smooth(n, x, y, &total);
        smooth(n, y, x, &total);
    }
#pragma omp parallel default(none) shared(n, x, y, top)
    {
#pragma omp for reduction(max : top)
        for (int i = 1; i <= n; i++)
            for (int j = 1; j <= n; j++)
                if (x[i][j] > top) top = x[i][j];
        scale(n, x, 1.5);
#pragma omp single
        for (int j = 0; j < n + 2; j++)
            y[0][j] = x[n + 1][j] + top;
    }
    dump(n, x);
    dump(n, y);
    printf("total %.17g\n", total);
    free(x);
    free(y);
    return 0;
}
