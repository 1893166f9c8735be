// Regions with many shared variables and values of every kind: the entry point of the runtime passes them on
// in registers and on the stack, and nothing in between may lose one.
#include "core.h"

static double mix(double a, float b, long c, int d, char e, double f, double g, double h, double i,
                  double j) {
    double sum = 0;
    long l1 = c, l2 = c + 1, l3 = c + 2, l4 = c + 3, l5 = c + 4, l6 = c + 5, l7 = c + 6, l8 = c + 7;
    double d1 = a, d2 = f, d3 = g, d4 = h, d5 = i, d6 = j, d7 = a + 1, d8 = f + 1, d9 = g + 1;
    struct {
        double values[8];
        int tag;
    } record = {{1, 2, 3, 4, 5, 6, 7, 8}, d};
#pragma omp parallel for firstprivate(l1, l2, l3, l4, l5, l6, l7, l8, d1, d2, d3, d4, d5, d6, d7, d8, d9,    \
                                          record, b, e) reduction(+ : sum)
    for (long at = 0; at < 1000; ++at)
        sum += (double)(l1 + l2 * 2 + l3 * 3 + l4 * 4 + l5 * 5 + l6 * 6 + l7 * 7 + l8 * 8) + d1 + d2 * 2 +
               d3 * 3 + d4 * 4 + d5 * 5 + d6 * 6 + d7 * 7 + d8 * 8 + d9 * 9 +
               record.values[at % 8] * record.tag + b + e;
    return sum;
}

static long variadic_like(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,
                          long k, long l, long m, long n, long o, long p) {
    long sum = 0;
#pragma omp parallel reduction(+ : sum) num_threads(2)
    {
#pragma omp for
        for (long at = 0; at < 100; ++at)
            sum += a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11 +
                   l * 12 + m * 13 + n * 14 + o * 15 + p * 16;
#pragma omp critical
        a += 1, b += 1, c += 1, d += 1, e += 1, f += 1, g += 1, h += 1, i += 1, j += 1, k += 1, l += 1,
            m += 1, n += 1, o += 1, p += 1;
    }
    return sum * 3 + a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p;
}

int main(void) {
    core_start();
    double total = 0;
    long whole = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        total += mix(i, 2, i, 4, 5, 6, 7, 8, 9, i);
        whole = whole * 3 + variadic_like(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, i);
    }
    printf("total %.1f whole %lx\n", total, (unsigned long)whole);
    return core_end();
}
