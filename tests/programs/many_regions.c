// Hundreds of different regions, most of them rarely, and an ordinary iteration in between.
#include "core.h"

#define REGION(number)                                                                                       \
    {                                                                                                        \
        uint64_t sum = 0;                                                                                    \
        _Pragma("omp parallel num_threads(2) reduction(+ : sum)") sum +=                                     \
            core_a[(number) * 61 + omp_get_thread_num()];                                                    \
        total = total * 3 + sum;                                                                             \
    }
#define FOUR(number) REGION(number) REGION(number + 1) REGION(number + 2) REGION(number + 3)
#define SIXTEEN(number) FOUR(number) FOUR(number + 4) FOUR(number + 8) FOUR(number + 12)
#define SIXTY_FOUR(number) SIXTEEN(number) SIXTEEN(number + 16) SIXTEEN(number + 32) SIXTEEN(number + 48)
#define ALL SIXTY_FOUR(0) SIXTY_FOUR(64) SIXTY_FOUR(128) SIXTY_FOUR(192)

// 256 regions in each copy of this function.
#define COPY(name)                                                                                           \
    static uint64_t name(void) {                                                                             \
        uint64_t total = 0;                                                                                  \
        ALL return total;                                                                                    \
    }
COPY(first)
COPY(second)

int main(void) {
    core_start();
    core_run(4); // as programs do: what observation may take at the start is not gone before the work begins
    uint64_t total = first();
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (i % 10 == 9) total = total * 3 + first() + second();
    }
    printf("total %016llx\n", (unsigned long long)total);
    return core_end();
}
