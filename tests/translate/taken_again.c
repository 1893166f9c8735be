#include <stdio.h>
#include <stdlib.h>
static long* w;
static int m = 9;
#pragma homing distribute w[cyclic] extent(40)
int main(void) {
    int n = 10;
    long* u = NULL;
#pragma homing distribute u[block] extent(n)
    for (int k = 0; k < 4; k++) {
        u = malloc(n * sizeof *u);
        w = calloc(40, sizeof *w);
#pragma omp parallel for
        for (int i = 0; i < n; i++)
            u[i] = 2 * i + k;
#pragma omp parallel for
        for (int i = 0; i < 40; i++)
            w[i] += i;
        printf("%ld %ld\n", u[n / 2], w[m + k]);
        free(u);
        free(w);
        w = NULL;
        n += 7;
    }
    return 0;
}
