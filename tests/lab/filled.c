// A program that uses six of every ten pages of an array in parallel, then fills the first node but for a
// little, and then begins to use the other pages: without homing, they land where there is memory.
//
//     filled MIB SECONDS       SECONDS of work before the node fills; less, once homing observes the array
//
// prints one JSON object.
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { page_bytes = 4096, most_nodes = 64, used = 6, of = 10 };
static const long left_free = 48l << 20;

/// Bytes that are free on the first node.
static long free_bytes(void) {
    FILE* file = fopen("/sys/devices/system/node/node0/meminfo", "r");
    char line[200];
    long kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Node %*d MemFree: %ld", &kib) == 1) break;
    if (file) fclose(file);
    return kib * 1024;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/// Has a page of the array a policy? By default it has none.
static int is_observed(const char* array, long pages) {
    for (long page = 0; page < pages; page += of * of) {
        int mode = MPOL_DEFAULT;
        syscall(SYS_get_mempolicy, &mode, NULL, 0ul, array + page * page_bytes, MPOL_F_ADDR);
        if (mode != MPOL_DEFAULT) return 1;
    }
    return 0;
}

static void fill_the_first_node(void) {
    const long most = free_bytes() - left_free, step = 1l << 20;
    const unsigned long node_0 = 1;
    char* memory =
        mmap(NULL, (size_t)most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (most <= 0 || memory == MAP_FAILED ||
        syscall(SYS_mbind, memory, most, MPOL_BIND, &node_0, 64ul, 0) != 0) {
        perror("fill");
        exit(1);
    }
    for (long at = 0; at + step <= most && free_bytes() > left_free; at += step)
        memset(memory + at, 1, (size_t)step);
}

int main(int count, char** words) {
    const long bytes = count > 2 ? atol(words[1]) << 20 : 0;
    const double work = count > 2 ? atof(words[2]) : 0;
    const long pages = bytes / page_bytes;
    char* array = NULL;
    if (bytes <= 0 || posix_memalign((void**)&array, page_bytes, (size_t)bytes) != 0) return 2;
    for (long page = 0; page < pages; ++page)
        if (page % of < used) array[page * page_bytes] = 1;
    long iterations = 0;
    for (const double end = seconds() + work; seconds() < end && !is_observed(array, pages); ++iterations) {
#pragma omp parallel for schedule(static)
        for (long page = 0; page < pages; ++page)
            if (page % of < used)
                for (long line = 0; line < page_bytes; line += 64)
                    ++array[page * page_bytes + line];
    }
    fill_the_first_node();
    for (long page = 0; page < pages; ++page)
        if (page % of >= used) array[page * page_bytes] = 1;
    long nodes[most_nodes] = {0}, late = 0;
    for (long page = 0; page < pages; ++page) {
        if (page % of < used) continue;
        ++late;
        volatile char* const byte = array + page * page_bytes;
        (void)*byte; // a page that is armed for a hint fault has no answer
        void* address = array + page * page_bytes;
        int node = -1;
        if (syscall(SYS_move_pages, 0, 1ul, &address, NULL, &node, 0) == 0 && node >= 0 && node < most_nodes)
            ++nodes[node];
    }
    printf("{\"iterations\": %ld, \"late\": %ld, \"nodes\": [%ld, %ld, %ld, %ld]}\n", iterations, late,
           nodes[0], nodes[1], nodes[2], nodes[3]);
    return 0;
}
