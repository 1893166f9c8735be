// affinity(...) = thread(...) in a program without distributed arrays. Counts iterations on other threads.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 5, i, elsewhere = 0;
    int* twice = malloc(sizeof(int) * (size_t)n);
#pragma omp parallel for reduction(+ : elsewhere)
#pragma homing affinity(k) = thread(k / 2)
    for (int k = 0; k < n; k++) {
        twice[k] = 2 * k;
        elsewhere += omp_get_thread_num() != k / 2 % omp_get_num_threads();
    }
#pragma omp parallel num_threads(3) reduction(+ : elsewhere)
#pragma omp for
#pragma homing affinity(i) = thread(n - i)
    for (i = 0; i < n; i++)
        if (omp_get_thread_num() == (n - i) % omp_get_num_threads())
            twice[i]++;
        else
            elsewhere++;
    for (i = 0; i < n; i++)
        printf("%d\n", twice[i]);
    printf("%d elsewhere\n", elsewhere);
    free(twice);
    return 0;
}
