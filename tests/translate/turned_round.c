#include <stdio.h>
#define N 14
static double a[N][N], b[N][N];
#pragma homing distribute a[*][cyclic(2)], b[*][cyclic(2)]
int main(void) {
    int i, j;
#pragma omp parallel for private(j)
    for (i = 0; i < N; i++)
        for (j = N - 1; j >= 0; j--) {
            a[i][j] = i + 3 * j;
            b[i][j] = 1;
        }
#pragma omp parallel for private(j)
    for (i = 0; i < N; i++)
        for (j = N - 2; j > 0; j -= 3)
            b[i][j] = a[i][j - 1] + a[i][j + 1];
    double s = 0;
    for (i = 0; i < N; i++)
        for (j = 0; j < N; j++)
            s = s / 2 + b[i][j] + a[i][j];
    printf("%.10g\n", s);
}
