/* Loops that write own elements and neighbours, some of each: a part sends back only what it has changed. */
#include <stdio.h>
#define N 14

static int a[N + 1], s[N], c[N];
#pragma homing distribute a[block], s[block], c[cyclic(2)]

int main(void) {
#pragma omp parallel for
#pragma homing on home(a[i])
    for (int i = 0; i < N; i++) {
        a[i] = i;
        if (i == N - 1) a[i + 1] = -5;
    }
    for (int i = 0; i < N; i++)
        s[i] = c[i] = i * 5 % 17;
    for (int it = 0; it < N; it++) {
#pragma omp parallel for
#pragma homing on home(s[i])
        for (int i = it % 2; i < N - 1; i += 2) {
            if (s[i] > s[i + 1]) {
                const int t = s[i];
                s[i] = s[i + 1];
                s[i + 1] = t;
            }
        }
#pragma omp parallel for
#pragma homing on home(c[i])
        for (int i = it % 2; i < N - 1; i += 2) {
            if (c[i] < c[i + 1]) {
                const int t = c[i];
                c[i] = c[i + 1];
                c[i + 1] = t;
            }
        }
    }
    for (int i = 0; i < N; i++)
        printf("%d %d %d\n", a[i + 1], s[i], c[i]);
    return 0;
}
