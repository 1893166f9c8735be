#include <stdio.h>
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
    return 0;
}
