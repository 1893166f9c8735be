// A thousand threads at once.
#include <omp.h>
#include <stdio.h>

static double a[1000][64];

int main(void) {
    int threads = 0;
    for (int k = 0; k < 2; ++k) {
#pragma omp parallel num_threads(1000)
        {
            const int me = omp_get_thread_num();
            for (int i = 0; i < 64; ++i)
                a[me][i] += me;
#pragma omp single
            threads = omp_get_num_threads();
        }
    }
    printf("%d\n", threads);
    return 0;
}
