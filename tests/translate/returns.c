#include <stdio.h>
#define N 20
static double a[N], b[N];
#pragma homing distribute a[block], b[block]
int main(void) {
    int i = 0;
#pragma omp parallel for
    for (i = 0; i < N; ++i)
        a[i] = b[i] = i;
    FILE* f = fopen("c2.txt", "w");
    if (f == NULL) {
        perror("c2");
        return 1;
    }
    for (i = 0; i < N; i++)
        if (fprintf(f, "%g\n", a[i]) < 0) return 2;
    fclose(f);
    f = fopen("c2.txt", "r");
    for (i = 0; i < N; i++) {
        double x;
        if (fscanf(f, "%lf", &x) != 1) break;
        b[i] += x;
    }
    fclose(f);
    remove("c2.txt");
    while (i > 0 && b[i - 1] > 3)
        i--;
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int k = 0; k < N; k++)
        s += b[k];
    printf("%d %g\n", i, s);
    return 0;
}
