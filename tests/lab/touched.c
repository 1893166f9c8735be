// An array that each thread uses a block of, and the program asks for the next touch of it. Prints where its
// pages are before and after.
#include <homing/homing.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, PAGES = 1024, NODES = 4 };
static int nodes[PAGES];

static void sweep(char* array) {
#pragma omp parallel
    {
        const int block = PAGES / omp_get_num_threads();
        char* mine = array + (long)omp_get_thread_num() * block * PAGE;
        for (int i = 0; i < block * PAGE; ++i)
            ++mine[i];
    }
}

static void print(const char* name, const char* array) {
    int on[NODES] = {0};
    homing_where(array, (size_t)PAGES * PAGE, nodes, PAGES);
    for (int i = 0; i < PAGES; ++i)
        if (nodes[i] >= 0 && nodes[i] < NODES) ++on[nodes[i]];
    printf("\"%s\": [%d, %d, %d, %d]", name, on[0], on[1], on[2], on[3]);
}

int main(void) {
    char* array = NULL;
    if (posix_memalign((void**)&array, PAGE, (size_t)PAGES * PAGE)) return 1;
    memset(array, 1, (size_t)PAGES * PAGE);
    sweep(array); // homing starts
    printf("{");
    print("before", array);
    const int status = homing_next_touch(array, (size_t)PAGES * PAGE);
    sweep(array);
    homing_iteration();
    printf(", \"status\": %d, ", status);
    print("after", array);
    long sum = 0;
    for (long i = 0; i < (long)PAGES * PAGE; ++i)
        sum += array[i];
    printf(", \"sum\": %ld}\n", sum);
    free(array);
    return 0;
}
