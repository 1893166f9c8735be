// Every call of homing.h once, and what it promises: run with several (assumed) nodes and with one.
#include <homing/homing.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGES = 256, PAGE = 4096, BYTES = PAGES * PAGE };

static int failures;

static void expect(int holds, const char* what) {
    if (!holds) {
        printf("failed: %s\n", what);
        ++failures;
    }
}

static void sweep(double* array, long count) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i)
        array[i] += 1;
}

int main(int argc, char** argv) {
    const int several = argc > 1 && atoi(argv[1]) > 1;
    (void)argv;
    double* array = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const long count = BYTES / (long)sizeof *array;
    for (long i = 0; i < count; ++i)
        array[i] = 0;

    expect(homing_watch(NULL, BYTES, "x") == HOMING_INVALID, "watch refuses a null pointer");
    expect(homing_watch(array, BYTES, "mapped") == HOMING_OK, "watch");
    expect(homing_unwatch(array + 1) == HOMING_INVALID, "unwatch of what is not watched");

    static int nodes[PAGES];
    expect(homing_where(array, BYTES, nodes, PAGES) == PAGES, "where tells the number of pages");
    if (several) {
        expect(homing_place_on_node(array, BYTES, 2) == HOMING_OK, "place on node 2");
        homing_where(array, BYTES, nodes, PAGES);
        int there = 0;
        for (int i = 0; i < PAGES; ++i)
            there += nodes[i] == 2;
        expect(there == PAGES, "all pages on node 2");
        expect(homing_place_on_node(array, BYTES, 77) == HOMING_INVALID, "no node 77");
        expect(homing_place_round_robin(array, BYTES) == HOMING_OK, "round robin");
        homing_where(array, BYTES, nodes, PAGES);
        int right = 0;
        for (int i = 0; i < PAGES; ++i)
            right += nodes[i] == i % 4;
        expect(right == PAGES, "pages go round");
        expect(homing_place_random(array, BYTES, 7) == HOMING_OK, "random");
    }

    const long half = homing_where(array, BYTES / 2 + 100, nodes, 3);
    expect(half == PAGES / 2, "only whole pages count");

    for (int i = 0; i < 12; ++i) {
        sweep(array, count);
        sweep(array, count);
        const int status = homing_iteration();
        expect(status == HOMING_OK || status == HOMING_ASIDE, "iteration");
    }
    homing_statistics_t statistics = {.struct_bytes = sizeof statistics};
    expect(homing_statistics(&statistics) == HOMING_OK, "statistics");
    if (several) {
        expect(statistics.active == 1, "at work");
        expect(statistics.nodes == 4, "four nodes");
        expect(statistics.iterations == 12, "iterations are those called");
        expect(homing_next_touch(array, BYTES) == HOMING_OK, "next touch");
        sweep(array, count);
        homing_iteration();
    }
    int inside = HOMING_OK, another = HOMING_OK;
#pragma omp parallel
    if (omp_get_thread_num() == 0)
        inside = homing_next_touch(array, BYTES);
    else
        another = homing_iteration();
    expect(!several || inside == HOMING_IN_REGION, "calls from inside a region are refused");
    expect(!several || another == HOMING_IN_REGION,
           "iterations are told by the thread that began the region");
    homing_statistics(&statistics);
    const uint64_t before = statistics.iterations;
#pragma omp parallel
    for (int i = 0; i < 3; ++i) {
#pragma omp master
        inside = homing_iteration();
#pragma omp barrier
    }
    expect(!several || inside == HOMING_OK,
           "the thread that began a region tells where iterations in it end");
    homing_statistics(&statistics);
    expect(!several || statistics.iterations == before + 3, "iterations within a region count");

    double sum = 0;
    for (long i = 0; i < count; ++i)
        sum += array[i];
    expect(sum == (several ? 25.0 : 24.0) * (double)count, "the program's numbers are its own");
    expect(homing_unwatch(array) == HOMING_OK, "unwatch");
    munmap(array, BYTES);
    printf("%s\n", failures ? "failed" : "passed");
    return failures != 0;
}
