// One allocation that the program cuts into its arrays itself: a matrix of five words a row, and three
// vectors.
//
// Truth: each part of the pool: DISTRIBUTE(BLOCK) over all threads. The pool as a whole: four times that.
#include "pattern.h"

enum { A_ROW = 5, VECTORS = 3 };

static long n; // rows
static word *matrix, *x, *y, *z;

static long allocate(long bytes) {
    n = bytes / ((A_ROW + VECTORS) * (long)sizeof(word));
    word* pool = pattern_array((A_ROW + VECTORS) * n);
    x = pool;
    matrix = x + n;
    y = matrix + A_ROW * n;
    z = y + n;
    return (A_ROW + VECTORS) * n * (long)sizeof(word);
}

static void fill(void) {
#pragma omp for schedule(static)
    for (long i = 0; i < n; i++) {
        for (long k = 0; k < A_ROW; k++)
            matrix[A_ROW * i + k] = (word)(i + k);
        x[i] = (word)i;
        y[i] = z[i] = 0;
    }
}

static void iterate(long number) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) {
        word sum = 0;
        for (long k = 0; k < A_ROW; k++)
            sum += matrix[A_ROW * i + k] * x[i + k < n ? i + k : i];
        y[i] = sum;
    }
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        z[i] += y[i] + (word)number;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        x[i] = pattern_next(x[i] + z[i]);
}

static word checksum(void) { return pattern_sum(pattern_sum(pattern_sum(0, x, n), y, n), z, n); }

int main(int argc, char** argv) {
    static const struct pattern pool = {"pattern_pool", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&pool, argc, argv);
}
