// Pages that apps/common/place.c deals out: dealt round-robin|random. Prints how many of an array's are on
// each node.
#define _GNU_SOURCE
#include "place.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { pages = 256, page = 4096, nodes = 4 };

static void show(const char* what, char* begin, int count) {
    int found[nodes] = {0};
    for (int i = 0; i < count; i++) {
        int node = -1;
        if (syscall(SYS_get_mempolicy, &node, NULL, 0, begin + (long)i * page, MPOL_F_NODE | MPOL_F_ADDR) ==
                0 &&
            node >= 0 && node < nodes)
            found[node]++;
    }
    printf("%s %d %d %d %d\n", what, found[0], found[1], found[2], found[3]);
}

int main(int argc, char** argv) {
    char* u = aligned_alloc(page, (size_t)pages * page);
    for (int i = 0; i < pages; i++)
        u[(long)i * page] = 1;
    const int error = app_place_pages(argc > 1 && strcmp(argv[1], "random") == 0 ? APP_PLACE_RANDOM
                                                                                 : APP_PLACE_ROUND_ROBIN);
    if (error != 0) printf("error %d\n", error);
    show("array", u, pages);
    return 0;
}
