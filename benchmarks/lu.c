// Dense LU without pivoting, column by column: a matrix that is swept again and again, a little less each
// time. lu N: prints the largest error of L U against the matrix.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 400;
    double* a = malloc((size_t)n * (size_t)n * sizeof *a);
    if (!a) return 1;
#define A(i, j) a[(size_t)(i) * (size_t)n + (size_t)(j)]
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            A(i, j) = i == j ? n : 1.0 / (1 + i + j);
    const double corner = A(n - 1, n - 1);
    for (int k = 0; k < n; ++k) {
#pragma omp parallel for schedule(static)
        for (int i = k + 1; i < n; ++i) {
            const double factor = A(i, k) / A(k, k);
            A(i, k) = factor;
            for (int j = k + 1; j < n; ++j)
                A(i, j) -= factor * A(k, j);
        }
    }
    double product = 0;
    for (int k = 0; k < n; ++k)
        product += (k == n - 1 ? 1.0 : A(n - 1, k)) * A(k, n - 1);
    printf("error %.3g\n", fabs(product - corner));
    free(a);
    return 0;
}
