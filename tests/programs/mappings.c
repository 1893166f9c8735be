// A program that has nearly as many mappings as the kernel allows a process, and maps and unmaps some in its
// regions: what homing protects costs mappings, too, and must leave it enough.
#include "core.h"
#include <errno.h>
#include <sys/mman.h>

enum { taken = 3000, stride = 128 * 1024, touched = 4096 };

static char* map(size_t bytes, int protection) {
    return (char*)mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int main(void) {
    long most = 0;
    FILE* limit = fopen("/proc/sys/vm/max_map_count", "r");
    if (!limit || fscanf(limit, "%ld", &most) != 1) most = 65530;
    if (limit) fclose(limit);
    core_start();
    // Seven eighths of them. Where the limit is beyond what takes a moment, there is room for all.
    const long own = most < 200000 ? most / 8 * 7 - 2000 : 1000;
    char* const many = map((size_t)own * 4096, PROT_READ | PROT_WRITE);
    for (long i = 0; i < own; i += 2)
        expect(mprotect(many + i * 4096, 4096, PROT_READ) == 0, "a mapping of its own");
    char* const data = (char*)calloc(touched, stride);
    static char* pieces[taken];
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel num_threads(3)
        {
            for (long k = omp_get_thread_num(); k < touched; k += 3)
                data[k * stride] += 1; // every other granule of next touch
#pragma omp barrier
            if (omp_get_thread_num() == 1) {
                for (int k = 0; k < taken; ++k)
                    pieces[k] = map(4096, k & 1 ? PROT_READ : PROT_READ | PROT_WRITE);
                for (int k = 0; k < taken; ++k) {
                    expect(pieces[k] != (char*)MAP_FAILED, "a mapping");
                    if (pieces[k] != (char*)MAP_FAILED) munmap(pieces[k], 4096);
                }
                char* const block = (char*)malloc(1 << 20);
                expect(block != NULL, "a block");
                free(block);
                char* const guarded = map(3 * 4096, PROT_READ | PROT_WRITE);
                expect(mprotect(guarded + 4096, 4096, PROT_NONE) == 0, "a guard page");
                munmap(guarded, 3 * 4096);
            }
        }
    }
    printf("touched %d\n", data[0]);
    return core_end();
}
