// LULESH's shape: 60 arrays, of which each of 90 short regions an iteration uses a few, some of them
// allocated and freed in every iteration.
#include "core.h"

enum { arrays = 60, temporaries = 12, words = 24 << 10, steps = 60, regions = 90 };
static double* array[arrays];

static void region(int number) {
    double* const to = array[(number * 7) % arrays];
    double* const one = array[(number * 11 + 3) % arrays];
    double* const other = array[(number * 13 + 5) % arrays];
#pragma omp parallel for schedule(static)
    for (long i = 0; i < words; ++i)
        to[i] = 0.5 * (to[i] + one[i]) + 0.25 * other[i];
}

int main(void) {
    core_start();
    for (int k = 0; k < arrays; ++k) {
        array[k] = (double*)malloc(words * sizeof(double));
        for (long i = 0; i < words; ++i)
            array[k][i] = (double)(i % 7 + k);
    }
    double sum = 0;
    for (int step = 0; step < steps; ++step) {
        core_step(step);
        for (int k = 0; k < temporaries; ++k) {
            free(array[k]);
            array[k] = (double*)malloc(words * sizeof(double));
            for (long i = 0; i < words; ++i)
                array[k][i] = (double)(i % 5);
        }
        for (int number = 0; number < regions; ++number)
            region(number);
        for (int k = 0; k < arrays; ++k) { // keep the numbers small
            sum += array[k][step];
            array[k][step] = 1 / (1 + array[k][step] * array[k][step]);
        }
    }
    printf("sum %.6e\n", sum);
    return core_end();
}
