// The OpenMP affinity clause: the program says where a task's data is, and calls nothing.
//   clang -O2 -fopenmp affinity_clause.c && homing run --tasks affinity -- ./a.out
#include <stdio.h>
#include <stdlib.h>

enum { blocks = 500, length = 10000 };

int main(void) {
    double* data = malloc(sizeof(double) * blocks * length);
    if (data == NULL) return 1;
    double total = 0;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < (long)blocks * length; ++i)
        data[i] = 1;
    for (int sweep = 0; sweep < 20; ++sweep)
#pragma omp parallel
#pragma omp single
        for (long b = 0; b < blocks; ++b) {
            double* block = data + b * length;
#pragma omp task affinity(block[0 : length]) shared(total) firstprivate(block)
            {
                double sum = 0;
                for (long i = 0; i < length; ++i)
                    sum += block[i];
#pragma omp atomic
                total += sum;
            }
        }
    printf("sum %.0f\n", total);
    free(data);
    return total == 20.0 * blocks * length ? 0 : 1;
}
