// A program that itself needs nearly as many mappings as the kernel allows: homing must not take the last
// ones from it.
#include "core.h"
#include <sys/mman.h>

int main(void) {
    core_start();
    long limit = 65530;
    FILE* file = fopen("/proc/sys/vm/max_map_count", "r");
    if (file) {
        if (fscanf(file, "%ld", &limit) != 1) limit = 65530;
        fclose(file);
    }
    if (limit > 70000) limit = 70000; // more would take too long; the point is made on ordinary machines only
    const long reserve = 1500, late = 600, pairs = (limit - reserve) / 2;
    char* block = (char*)mmap(NULL, (size_t)(2 * pairs + 2 * late + 2) * 4096, PROT_READ,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    expect(block != MAP_FAILED, "reserve");
    long done = 0;
    for (long i = 0; i < pairs; ++i) // every second page differs: two mappings each
        done += mprotect(block + i * 2 * 4096, 4096, PROT_NONE) == 0;
    expect(done == pairs, "many mappings before");
    uint64_t seen = 0;
    long inside = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
#pragma omp parallel reduction(+ : seen)
        {
            if (omp_get_thread_num() == 0 && inside < late)
                for (int n = 0; n < 30; ++n, ++inside)
                    expect(mprotect(block + (pairs + inside) * 2 * 4096, 4096, PROT_NONE) == 0,
                           "a mapping of the program's");
            seen += core_read_share();
        }
    }
    printf("inside %ld seen %llx\n", inside, (unsigned long long)seen);
    return core_end();
}
