#include <assert.h>
#include <stdio.h>
#define N 40
#define SMALL(a) (((a) % 97 + 97) % 97)
#define SQ(a) ((a) * (a))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define INC(a) (++(a))
#define SET(a, v) (a) = (v)
#define SWAP(a, b)                                                                                           \
    do {                                                                                                     \
        long t_ = a;                                                                                         \
        a = b;                                                                                               \
        b = t_;                                                                                              \
    } while (0)
static long x[N], y[N], z[N];
static int count;
#pragma homing distribute x[cyclic(3)], y[cyclic(3)], z[cyclic(3)]
int main(void) {
#pragma omp parallel for
    for (int i = 0; i < N; i++) {
        SET(x[i], SMALL(i * 7));
        SET(y[i], 0);
        z[i] = 1;
    }
#pragma omp parallel for
    for (int i = 1; i < N - 1; i++) {
        y[i] = MAX(x[i - 1], SQ(x[i + 1])) + SMALL(x[i] + 3);
        INC(z[i]);
        assert(x[i] >= 0 && "in range");
    }
#pragma omp parallel for
    for (int i = N - 1; i >= 0; i--) {
        SWAP(y[i], z[i]);
        if (SMALL(x[i]) > 50) INC(y[i]);
    }
    INC(count);
    long s = 0;
    for (int i = 0; i < N; i++)
        s += SQ(x[i]) + 3 * y[i] + 5 * z[i];
    printf("%ld %d\n", s, count);
}
