/* The tutorial's slow program: one thread makes two grids, and all threads smooth them. With -DPARALLEL
   every thread makes the rows that it will smooth. */
#include <stdio.h>
#include <stdlib.h>

enum { n = 2050, sweeps = 8 };

static double (*make(void))[n] {
    double(*grid)[n] = malloc(sizeof(double[n][n]));
    if (!grid) exit(1);
#ifdef PARALLEL
#pragma omp parallel for schedule(static)
#endif
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            grid[i][j] = i == 0 ? 1.0 : 0.0;
    return grid;
}

static void smooth(double (*to)[n], double (*from)[n]) {
#pragma omp parallel for schedule(static)
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
            to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
}

int main(void) {
    double(*hot)[n] = make();
    double(*cold)[n] = make();
    for (int sweep = 0; sweep < sweeps; sweep++) {
        smooth(cold, hot);
        smooth(hot, cold);
    }
    printf("heat %.6f\n", hot[1][n / 2]);
    free(cold);
    free(hot);
    return 0;
}
