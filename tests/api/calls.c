// Every call of homing.h once, and what it promises: run with several (assumed) nodes and with one.
#include <homing/homing.h>

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGES = 256, PAGE = 4096, BYTES = PAGES * PAGE, ERRNO = 77 };

static int failures;

static void expect(int holds, const char* what) {
    if (!holds || errno != ERRNO) {
        printf("failed: %s (errno %d)\n", what, errno);
        ++failures;
    }
    errno = ERRNO;
}

static void sweep(double* array, long count) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i)
        array[i] += 1;
    errno = ERRNO; // the runtime may change it
}

static void nothing(intptr_t block, void* data) {
    (void)block;
    (void)data;
}

static void queues(void* memory) {
    homing_queues_t* by_node = homing_queues_create("by node", HOMING_BY_NODE, 0);
    homing_queues_t* by_cache = homing_queues_create("by cache", HOMING_BY_CACHE, 0);
    expect(homing_queues_put_at(by_node, 7, memory, BYTES) == HOMING_OK, "put at its home");
    expect(homing_queues_put_at(by_cache, 7, memory, BYTES) == HOMING_INVALID, "no cache is a home");
    expect(homing_queues_put(by_cache, 7, homing_domain_here(HOMING_BY_CACHE)) == HOMING_OK, "put");
    expect(homing_queues_run(by_node, NULL, NULL) == HOMING_INVALID, "no work to run");
    expect(homing_queues_drain(by_node, NULL, NULL) == 0, "no work to drain by");
    expect(homing_queues_waiting_all(by_node) == 1, "the block still waits");
    expect(homing_queues_run(by_node, nothing, NULL) == 1, "run");
    expect(homing_queues_drain(by_cache, nothing, NULL) == 1, "drain");
    expect(homing_queues_destroy(by_node) == HOMING_OK && homing_queues_destroy(by_cache) == HOMING_OK,
           "destroy");
}

int main(int argc, char** argv) {
    const int several = argc > 1 && atoi(argv[1]) > 1;
    (void)argv;
    double* array = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const long count = BYTES / (long)sizeof *array;
    for (long i = 0; i < count; ++i)
        array[i] = 0;
    homing_statistics_t statistics = {.struct_bytes = sizeof statistics};
    errno = ERRNO;

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
        expect(homing_statistics(&statistics) == HOMING_OK, "statistics before the first region");
        expect(statistics.active == 0 && statistics.nodes == 4, "nodes are known");
        expect(statistics.pages_moved > 0, "what was placed was moved");
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
        expect(homing_iteration() == HOMING_OK, "iteration");
        if (i == 0) homing_statistics(&statistics);
    }
    // Before the first call time may have ended one: on a busy machine a sweep is long.
    const uint64_t first = statistics.iterations;
    expect(homing_statistics(&statistics) == HOMING_OK, "statistics");
    if (several) {
        expect(statistics.active == 1, "at work");
        expect(statistics.nodes == 4, "four nodes");
        expect(statistics.iterations == first + 11, "iterations are those called");
        expect(homing_next_touch(array, BYTES) == HOMING_OK, "next touch");
        sweep(array, count);
        homing_iteration();
    }
    int inside = HOMING_OK, another = HOMING_OK, pages = 0, known = HOMING_INVALID;
#pragma omp parallel
    if (omp_get_thread_num() == 0) {
        inside = homing_next_touch(array, BYTES);
        pages = (int)homing_where(array, BYTES, nodes, PAGES);
        known = homing_statistics(&statistics);
    } else
        another = homing_iteration();
    errno = ERRNO;
    expect(!several || inside == HOMING_IN_REGION, "calls from inside a region are refused");
    expect(pages == PAGES && known == HOMING_OK, "what may be asked from anywhere");
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
    errno = ERRNO;
    expect(!several || inside == HOMING_OK,
           "the thread that began a region tells where iterations in it end");
    errno = ERRNO;
    homing_statistics(&statistics);
    expect(!several || statistics.iterations == before + 3, "iterations within a region count");

    queues(array);
    double sum = 0;
    for (long i = 0; i < count; ++i)
        sum += array[i];
    expect(sum == (several ? 25.0 : 24.0) * (double)count, "the program's numbers are its own");
    expect(homing_unwatch(array) == HOMING_OK, "unwatch");
    munmap(array, BYTES);
    printf("%s\n", failures ? "failed" : "passed");
    return failures != 0;
}
