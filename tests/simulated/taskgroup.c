// Tasks under a taskgroup, round after round: clang's runtime waits for them without sleep.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    const long rounds = argc > 1 ? atol(argv[1]) : 3;
    enum { blocks = 32, words = 4096 };
    double* data = calloc(blocks, words * sizeof *data);
    if (!data) return 1;
#pragma omp parallel
#pragma omp single
    for (long round = 0; round < rounds; ++round) {
#pragma omp taskgroup
        for (long block = 0; block < blocks; ++block) {
#pragma omp task firstprivate(block)
            for (long k = 0; k < words; ++k)
                data[block * words + k] += 1;
        }
    }
    double sum = 0;
    for (long k = 0; k < (long)blocks * words; ++k)
        sum += data[k];
    printf("%g\n", sum / blocks / words);
    free(data);
    return 0;
}
