// A program without OpenMP: it is left alone.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    enum { words = 1 << 18 };
    uint64_t *a = (uint64_t*)malloc(words * sizeof *a), sum = 0;
    for (long i = 0; i < words; ++i)
        sum += a[i] = (uint64_t)i * 5;
    printf("sum %llu\n", (unsigned long long)sum);
    free(a);
    return 4;
}
