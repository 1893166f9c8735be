/* Shared variables that loops inside a region add to, one after another, and read behind them. */
#include <stdio.h>
#define N 40

static double x[N], y[N];
#pragma homing distribute x[block], y[cyclic]

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
    return 0;
}
