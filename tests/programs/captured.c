// Regions that capture from no value to twenty, by address and by value: compilers hand each to the runtime
// as one argument of its own, the first few in registers and the others on the stack.
#include "core.h"

#define LIST_0(X)
#define LIST_1(X) X(1)
#define LIST_2(X) LIST_1(X) X(2)
#define LIST_3(X) LIST_2(X) X(3)
#define LIST_4(X) LIST_3(X) X(4)
#define LIST_5(X) LIST_4(X) X(5)
#define LIST_6(X) LIST_5(X) X(6)
#define LIST_7(X) LIST_6(X) X(7)
#define LIST_8(X) LIST_7(X) X(8)
#define LIST_9(X) LIST_8(X) X(9)
#define LIST_10(X) LIST_9(X) X(10)
#define LIST_15(X) LIST_10(X) X(11) X(12) X(13) X(14) X(15)
#define LIST_20(X) LIST_15(X) X(16) X(17) X(18) X(19) X(20)

#define SHARED(n) uint64_t shared_##n = seed * (n + 1);
#define PRIVATE(n) double private_##n = (double)(seed % 1000) + n;
#define PRIVATE_CLAUSE(n) , private_##n
#define ADD_SHARED(n) mine = mine * 31 + shared_##n;
#define ADD_PRIVATE(n) mine = mine * 31 + (uint64_t)(private_##n * 8);
#define CHANGE(n) __atomic_fetch_add(&shared_##n, mine, __ATOMIC_RELAXED);
#define COLLECT(n) total = total * 31 + shared_##n;

static uint64_t nothing;

// One region, and one with a team that the program chooses, of each number of values: half of them shared,
// half private copies.
#define REGIONS(n)                                                                                           \
    static uint64_t captured_##n(uint64_t seed) {                                                            \
        uint64_t total = 0;                                                                                  \
        double zero = (double)seed;                                                                          \
        LIST_##n(SHARED) LIST_##n(PRIVATE);                                                                  \
        _Pragma("omp parallel num_threads(3)") {                                                             \
            uint64_t mine = (uint64_t)omp_get_thread_num() + n;                                              \
            LIST_##n(CHANGE) __atomic_fetch_add(&nothing, mine, __ATOMIC_RELAXED);                           \
        }                                                                                                    \
        PARALLEL_FIRSTPRIVATE(zero LIST_##n(PRIVATE_CLAUSE)) {                                               \
            uint64_t mine = (uint64_t)zero;                                                                  \
            LIST_##n(ADD_PRIVATE) LIST_##n(ADD_SHARED) zero = 0;                                             \
            __atomic_fetch_add(&nothing, mine, __ATOMIC_RELAXED);                                            \
        }                                                                                                    \
        TEAMS_FIRSTPRIVATE(zero LIST_##n(PRIVATE_CLAUSE)) {                                                  \
            uint64_t mine = (uint64_t)zero;                                                                  \
            LIST_##n(ADD_PRIVATE) LIST_##n(ADD_SHARED) __atomic_fetch_add(&nothing, mine, __ATOMIC_RELAXED); \
        }                                                                                                    \
        LIST_##n(COLLECT) return total + nothing;                                                            \
    }
#define PRAGMA(text) _Pragma(#text)
#define PARALLEL_FIRSTPRIVATE(...) PRAGMA(omp parallel num_threads(2) firstprivate(__VA_ARGS__))
#define TEAMS_FIRSTPRIVATE(...) PRAGMA(omp teams num_teams(1) firstprivate(__VA_ARGS__))

REGIONS(0)
REGIONS(1)
REGIONS(2)
REGIONS(3)
REGIONS(4)
REGIONS(5)
REGIONS(6)
REGIONS(7)
REGIONS(8)
REGIONS(9)
REGIONS(10)
REGIONS(15)
REGIONS(20)

// The compiler leaves a region in place where its if clause is false.
static uint64_t in_place(uint64_t seed) {
    uint64_t total = 0;
#pragma omp parallel if (seed % 2) reduction(+ : total) num_threads(2)
    total += seed + (uint64_t)omp_in_parallel();
    return total;
}

int main(void) {
    static uint64_t (*const regions[])(uint64_t) = {
        captured_0, captured_1, captured_2, captured_3,  captured_4,  captured_5,  captured_6,
        captured_7, captured_8, captured_9, captured_10, captured_15, captured_20, in_place};
    core_start();
    uint64_t total = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        for (size_t at = 0; at < sizeof regions / sizeof *regions; ++at)
            total = total * 3 + regions[at]((uint64_t)i + at);
    }
    printf("total %016llx\n", (unsigned long long)total);
    return core_end();
}
