/* Shared variables that loops inside a region add to, one after another, and read behind them. */
#include <stdio.h>
#include <stdlib.h>
#define N 40

static double x[N], y[N];
#pragma homing distribute x[block], y[cyclic]

static double grid[N][3];
static float *line;
#pragma homing distribute grid[block][*]
#pragma homing distribute line[block] extent(N)
static void halve(void);
static void update(double by) {
    int i;
#pragma omp for
    for (i = 0; i < N; i++)
        y[i] = y[i] + by;
    halve();
}
static void halve(void) {
#pragma omp for
    for (int i = 0; i < N; i++)
        y[i] *= 0.5;
}
static void smooth(int from) {
#pragma omp for
    for (int i = from; i < N - 1; i++)
        for (int j = 0; j < 3; j++)
            grid[i][j] = line[i] * j;
#pragma omp for nowait
    for (int i = 0; i < N; i++) line[i] += 1;
}

int main(void) {
    static int histogram[8], calls;
    double most = -1, total = 3, seen = 0, last = 0;
#pragma omp parallel
    {
#pragma omp for nowait
#pragma homing on home(x[i])
        for (int i = 0; i < N; i++) {
            x[i] = i * i % 17 * 1.25;
#pragma omp atomic
            histogram[i * 7 % 8] += 1;
        }
#pragma omp for reduction(+ : calls)
#pragma homing on home(x[i])
        for (int i = 0; i < N; i++) {
            calls++;
#pragma omp critical
            if (x[i] > most) most = x[i];
#pragma omp atomic
            total += x[i];
        }
#pragma omp single
        seen = total + most + x[2];
#pragma omp master
        last = x[N - 1] * 2;
#pragma omp barrier
#pragma omp for
#pragma homing on home(y[i])
        for (int i = 0; i < N; i++) {
            y[i] = seen + last;
#pragma omp atomic
            total += 1;
        }
    }
    for (int k = 0; k < 8; k++)
        printf("%d ", histogram[k]);
    printf("%d %.2f %.2f %.2f\n", calls, most, total, y[3]);
    line = malloc(N * sizeof *line);
    for (int i = 0; i < N; i++)
        line[i] = i;
#pragma omp parallel
    {
        update(2.0);
        for (int k = 0; k < 3; k++)
            smooth((1 + k) / 2);
        update(-0.5);
    }
    printf("%g %g %g\n", y[1], line[N - 1], grid[7][2]);
    free(line);
    return 0;
}
