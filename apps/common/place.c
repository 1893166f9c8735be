#define _GNU_SOURCE // syscall
#include "place.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_NODES = 64 };

struct nodes {
    int count, numbers[MOST_NODES];
};

static int allowed_nodes(struct nodes* nodes) {
    unsigned long mask[16] = {0}; // 1,024 nodes, what a kernel may have
    if (syscall(SYS_get_mempolicy, NULL, mask, 8 * sizeof mask, NULL, MPOL_F_MEMS_ALLOWED) != 0) return errno;
    for (int node = 0; node < MOST_NODES; node++)
        if (mask[0] >> node & 1) nodes->numbers[nodes->count++] = node;
    return 0;
}

// A number that looks random, and is the same in each run (the constants of SplitMix64: G. L. Steele et al.,
// "Fast splittable pseudorandom number generators", OOPSLA 2014).
static uint64_t random_of(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

// Each page in a call of its own: one for several ends at the first page that it cannot move, and leaves the
// others where they are (Linux 6.1). `number`: of the first page among all that were dealt out before.
static int place_range(uintptr_t begin, uintptr_t end, enum app_place place, const struct nodes* nodes,
                       uint64_t* number) {
    for (const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE); begin < end; begin += page) {
        const uint64_t drawn = place == APP_PLACE_RANDOM ? random_of(*number) : *number;
        void* const address = (void*)begin;
        const int target = nodes->numbers[drawn % (uint64_t)nodes->count];
        int status = 0; // a page that is not there is told of here, and is no error
        if (syscall(SYS_move_pages, 0, 1UL, &address, &target, &status, MPOL_MF_MOVE) < 0 && errno != ENOENT)
            return errno;
        if (status >= 0) ++*number;
    }
    return 0;
}

int app_place_pages(enum app_place place) {
    if (place == APP_PLACE_FIRST_TOUCH) return 0;
    struct nodes nodes = {0};
    int error = allowed_nodes(&nodes);
    if (error != 0) return error;
    if (nodes.count == 0) return ENODEV;
    FILE* maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) return errno;
    char line[4352]; // a path of 4,096 bytes at the end
    // What is larger than the machine's memory is a sparse table (a sanitizer's, a simulator's), and no
    // array.
    const uint64_t most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t number = 0;
    while (error == 0 && fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin = 0, end = 0;
        char access[5] = "";
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, access) != 3) continue;
        if (strcmp(access, "rw-p") == 0 && end - begin <= most && strstr(line, ".so") == NULL)
            error = place_range(begin, end, place, &nodes, &number);
    }
    fclose(maps);
    return error;
}
