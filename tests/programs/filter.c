// A filter in a pipe: reads numbers from stdin, writes others to stdout, in every iteration; nothing else may
// appear there and nothing may be taken from it.
#include "core.h"
#include <unistd.h>

int main(void) {
    core_start();
    long lines = 0, sum = 0, value;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (scanf("%ld", &value) != 1) break;
        ++lines;
        sum += value;
        printf("%ld\n", sum);
    }
    printf("lines %ld\n", lines);
    return core_end();
}
