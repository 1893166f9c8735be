// Irregular programs: the number and order of regions differs in every iteration, and so do the owners.
//
// regions (an adaptive sequence) | owners (they rotate) | random (indirect accesses, no owner) | drift
#include "core.h"

static uint64_t state = 88172645463325252u;
static uint32_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 11);
}

static void smooth(uint64_t salt) {
#pragma omp parallel for schedule(static)
    for (long at = 0; at < CORE_WORDS; ++at)
        core_b[at] = core_b[at] * 3 + salt;
}
static void refine(uint64_t salt) {
#pragma omp parallel for schedule(static)
    for (long at = 0; at < CORE_WORDS; ++at)
        core_a[at] ^= core_b[at] + salt;
}
static void adapt(uint64_t salt) {
#pragma omp parallel for schedule(dynamic, 8192)
    for (long at = 0; at < CORE_WORDS; ++at)
        core_c[at] += core_a[at] >> (salt & 7);
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "regions";
    core_start();
    static uint32_t index[CORE_WORDS];
    for (long at = 0; at < CORE_WORDS; ++at)
        index[at] = next_random() % CORE_WORDS;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (strcmp(how, "regions") == 0) {
            for (uint32_t n = next_random() % 4; n > 0; --n)
                smooth(n);
            for (uint32_t n = next_random() % 3; n > 0; --n) {
                refine(n);
                if (next_random() % 2) adapt(n);
            }
        } else if (strcmp(how, "random") == 0) {
            uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
            for (long at = 0; at < CORE_WORDS; ++at)
                sum += core_a[index[at]];
            core_sum += sum;
        } else {
            const int shift = strcmp(how, "owners") == 0 ? i : i / 8;
#pragma omp parallel num_threads(3)
            {
                const int part = (omp_get_thread_num() + shift) % 3;
                for (long at = CORE_WORDS * part / 3; at < CORE_WORDS * (part + 1) / 3; ++at)
                    core_b[at] += core_a[at] * 5;
            }
            refine((uint64_t)i);
        }
    }
    return core_end();
}
