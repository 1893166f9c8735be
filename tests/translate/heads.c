#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static double grid[9][8], v[13];
static char word[40];
#pragma homing distribute grid[block][*]
#pragma homing distribute v[block]
#pragma homing distribute word[block]
static int order(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}
static void more(int by) {
#pragma omp parallel for
    for (int i = 0; i < 13; i++)
        v[i] += by;
}
static double count(const double* p, double least) {
    int found = 0;
    for (int i = 0; i < 13; i++)
        found += p[i] > least;
    return found;
}
static void columns(void) {
#pragma homing redistribute grid[*][block]
#pragma omp parallel for
#pragma homing on home(grid[:][j])
    for (int j = 0; j < 8; j++)
        for (int i = 1; i < 9; i++)
            grid[i][j] += grid[i - 1][j] + v[0];
#pragma homing redistribute grid[block][*]
}
static void conditions(void) {
    int i, used = 0;
    if (v[0] < 1 && count(v, 0) < 1)
        more(1);
    else if (v[1] > 0)
        more(2);
    while (v[0] < 3) {
        more(1);
        if (v[2] == 2)
            continue;
    }
    do
        more(1);
    while (count(v, 5) < 13);
    for (i = 0; i < v[12] && i < 4; i++)
        more(i);
    switch ((int)v[3]) {
    case 12:
        more(1);
        break;
    default:
        more(-1);
    }
    columns();
    columns();
    for (i = 0; i < 4; i++) {
        int got;
        if (sscanf("3.5 1.25 9 7" + used, "%lf%n", &v[i], &got) != 1)
            break;
        used += got;
    }
    qsort(&v[2], 11, sizeof v[0], order);
    strcpy(word, "abc");
    strcpy(word + 3, "defghi");
    snprintf(&word[20], 10, "%d", 42);
    puts(&word[1]);
    printf("%s %s %zu %g %g\n", word + 20, &word[4], strlen(&word[5]), v[2], v[12]);
    printf("%g %g\n", grid[8][7], grid[3][0]);
}
static long norm1(const long* u, int n) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += u[i];
    return sum;
}
int main(int argc, char** argv) {
    (void)argv;
    long a[50];
#pragma homing distribute a[block]
    for (int i = 0; i < 50; i++)
        a[i] = i % 3;
    if (norm1(a, 50) == 4) {
        printf("four %ld\n", a[2]);
    } else if (norm1(a, 50) > 5) {
        a[2] = 7;
        printf("more %ld\n", a[2]);
    }
    while (norm1(a, 50) > 40) {
        for (int k = 0; k < 50; k++) {
            a[k]--;
        }
    }
    for (int i = 0; i < norm1(a, 50); i++) {
        a[i]--;
    }
    do {
        a[1] = a[1] + 5;
    } while (norm1(a, 50) < 20);
    switch (norm1(a, 50)) {
    case 1:
        printf("one\n");
        break;
    default:
        printf("many %ld\n", a[3]);
    }
    for (int k = 0; k < 5; k++) {
        switch (k) {
        case 1:
            printf("one %ld\n", a[3]);
            break;
        case 2: {
#pragma omp parallel for
            for (int i = 0; i < 50; i++)
                a[i] = i;
            break;
        }
        case 3:
            a[3] = 40;
            break;
        default:
            printf("many %ld\n", a[3]);
        }
    }
    if (argc > 5) {
        a[0] = 1;
    } else
#pragma omp parallel for
        for (int i = 0; i < 50; i = 2 + i)
            a[i] = i;
    printf("%ld %ld\n", a[3], a[4]);
    conditions();
    return 0;
}
