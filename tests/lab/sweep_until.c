/* Touches 32 MiB on CPU 0, then sweeps them on CPU 1 until kernel NUMA balancing has armed 1,000 pages for
 * hint faults, or so many seconds passed. Prints how many it has armed. (The kernel leaves the pages of a
 * single-threaded process alone that lie on the node where it runs: hence two CPUs, of different nodes.) */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SIZE = 32 << 20, PAGE = 4096, ENOUGH = 1000 };

static long armed_pages(void) {
    char name[128];
    long value, found = -1;
    FILE* file = fopen("/proc/vmstat", "r");
    while (file && fscanf(file, "%127s %ld", name, &value) == 2)
        if (strcmp(name, "numa_pte_updates") == 0) found = value;
    if (file) fclose(file);
    return found;
}

static void run_on(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus)) exit(2);
}

int main(int argc, char** argv) {
    const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 3);
    char* data = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const long before = armed_pages();
    if (data == MAP_FAILED || before < 0) return 1;
    madvise(data, SIZE, MADV_NOHUGEPAGE);
    run_on(0);
    memset(data, 1, SIZE);
    run_on(1);
    long armed = 0;
    while (time(NULL) < end && armed < ENOUGH) {
        for (int sweep = 0; sweep < 20; sweep++)
            for (size_t i = 0; i < SIZE; i += PAGE)
                data[i]++;
        armed = armed_pages() - before;
    }
    printf("%ld\n", armed);
    return 0;
}
