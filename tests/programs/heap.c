// The heap is laid out as without homing: how far a block begins behind the heap's beginning decides which
// threads share its cache lines and pages. Up to the first region exactly; what lies behind it is printed
// alone with the argument "behind", for a comparison with tolerance: in the region threads come to life, and
// the loader's table for each of them is some bytes longer where one more library is loaded.
#include "core.h"

enum { BLOCKS = 40 };

static unsigned long heap_begin(void) {
    unsigned long begin = 0;
    char line[512];
    FILE* maps = fopen("/proc/self/maps", "r");
    expect(maps != NULL, "/proc/self/maps opens");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "[heap]")) sscanf(line, "%lx", &begin);
    fclose(maps);
    return begin;
}

int main(int count, char** arguments) {
    (void)arguments;
    unsigned long blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; ++i)
        blocks[i] = (unsigned long)malloc(100ul * (unsigned long)((i + 1) * (i + 3)) % 100000);
    const unsigned long begin = heap_begin();
    expect(begin != 0, "there is a heap");
    core_start();
    if (count > 1) {
        core_step(0);
        printf("%lu\n", (unsigned long)malloc(1000) - begin);
        return 0;
    }
    for (int i = 0; i < BLOCKS; ++i)
        printf("%lx\n", blocks[i] - begin);
    for (int i = 0; i < CORE_ITERATIONS; ++i)
        core_step(i);
    return core_end();
}
