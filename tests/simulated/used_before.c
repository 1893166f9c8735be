// Three arrays that share the sets of a cache with ways of 2 MiB: the first is read once, the two others
// again and again, one after the other.
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

enum { way = 2 << 20, bytes = 1 << 20, sweeps = 20 };

static long read_all(const volatile char* array) {
    long total = 0;
    for (long at = 0; at < bytes; at += 64)
        total += array[at];
    return total;
}

int main(void) {
    char* memory = mmap(NULL, 6 * (size_t)way, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    const char* first = memory + (way - (uintptr_t)memory % way) % way;
    long total = 0;
#pragma omp parallel num_threads(1) reduction(+ : total)
    {
        total += read_all(first);
        for (int sweep = 0; sweep < sweeps; ++sweep)
            total += read_all(first + 3 * way) + read_all(first + 4 * way);
    }
    printf("%ld\n", total);
    return 0;
}
