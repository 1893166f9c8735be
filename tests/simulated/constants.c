// Sums a table of constants: reads that no compiler instruments.
#include <stdio.h>

enum { n = 1 << 16 };
#define ROW(i) (i) * 0.5, (i) * 0.25, (i) * 0.125, (i) * 2.0
#define ROWS(i) ROW(i), ROW(i + 1), ROW(i + 2), ROW(i + 3)
static const double table[n] = {ROWS(1), ROWS(5), ROWS(9), [n - 4] = ROW(13)};

int main(void) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; ++i)
        sum += table[i];
    printf("%g\n", sum);
    return 0;
}
