// Memory between two holes in the address space: pages of a described machine that are larger than this one's
// reach into them. Calls take it, and refuse one byte more.
#include <homing/homing.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 517 * page, hole = 1 << 20;
    char* all = mmap(0, bytes + 2 * hole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || munmap(all, hole) || munmap(all + hole + bytes, hole)) return 2;
    char* a = all + hole;
    int nodes[4];
    memset(a, 1, bytes);
    printf("%d %d %d %d %d\n", homing_watch(a, bytes, "a"), homing_watch_hot(a, bytes, "hot"),
           homing_next_touch(a, bytes), homing_place_on_node(a, bytes, 1),
           homing_where(a, bytes, nodes, 4) > 0);
    printf("%d %d %d\n", homing_watch(a, bytes + 1, "a"), homing_watch_hot(a - 1, bytes, "hot"),
           homing_place_on_node(a, bytes + 1, 1));
    for (int step = 0; step < 3; ++step) {
#pragma omp parallel for
        for (size_t i = 0; i < bytes; ++i)
            a[i] += 1;
        homing_iteration();
    }
    return a[bytes - 1] != 4;
}
