// Its array is distributed where homing's translator is the compiler; a compiler takes no notice.
#include <stdio.h>

enum { n = 1 << 16 };
static double x[n];
#pragma homing distribute x[block]

int main(void) {
    double sum = 0;
#pragma omp parallel for
    for (int i = 0; i < n; ++i)
        x[i] = i;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; ++i)
        sum += x[i];
    printf("sum %.0f\n", sum);
    return 0;
}
