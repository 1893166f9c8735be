#include <stdio.h>

#define N 64

static unsigned short small[64];
static int sizes[64];
static volatile int seen[40];
#pragma homing distribute seen[block]

int main(void) {
    for (int i = 0; i < 64; i++)
        sizes[i] = small[i] = i == 1 ? N - 2 : i < 3 ? 1 : 0;
    int a[N], b[N], sum = 0;
#pragma homing distribute a[gen_block(sizes)], b[gen_block(small)]
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        a[i] = i * i;
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        b[i] = i;
#pragma omp parallel for
    for (int i = 0; i < 40; i++)
        seen[i] = i;
    for (int i = 0; i < N; i++)
        sum += b[i] % 7 + a[i] % 5;
    printf("%d %d\n", sum, seen[5]);
    return 0;
}
