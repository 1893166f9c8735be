// The number of threads changes all the time: threads end, come back, and there are many of them.
//
// varying | many (100 threads) | pause (omp_pause_resource) | dynamic | affinity (threads move between CPUs)
// | one
#include "core.h"
#include <sched.h>

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "varying";
    core_start();
    uint64_t total = 0;
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        if (strcmp(how, "varying") == 0) omp_set_num_threads(1 + i * 5 % 8);
        if (strcmp(how, "one") == 0) omp_set_num_threads(1);
        if (strcmp(how, "dynamic") == 0) omp_set_dynamic(1);
        core_step(i);
        uint64_t sum = 0;
        const int threads = strcmp(how, "many") == 0 ? 100 : strcmp(how, "one") == 0 ? 1 : 2 + i % 3;
        if (strcmp(how, "many") != 0 || i % 4 == 0) {
#pragma omp parallel num_threads(threads) reduction(+ : sum)
            {
                if (strcmp(how, "affinity") == 0) {
                    cpu_set_t one;
                    CPU_ZERO(&one);
                    int wanted = i % CPU_COUNT(&all);
                    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
                        if (CPU_ISSET(cpu, &all) && wanted-- == 0) CPU_SET(cpu, &one);
                    sched_setaffinity(0, sizeof one, &one);
                }
                sum += core_read_share();
                if (strcmp(how, "affinity") == 0) sched_setaffinity(0, sizeof all, &all);
            }
        }
        total = total * 3 + sum;
        if (strcmp(how, "pause") == 0 && i % 5 == 4)
            expect(omp_pause_resource(omp_pause_soft, omp_get_initial_device()) == 0, "pause");
    }
    printf("total %016llx\n", (unsigned long long)total);
    return core_end();
}
