// Started with stdin, stdout and stderr closed: the first files it opens get these numbers, and nobody
// else's.
#include "core.h"
#include <fcntl.h>
#include <unistd.h>

int main(int count, char** arguments) {
    if (count < 2) return 2;
    const int first = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    const int second = open("/dev/null", O_RDWR), third = open("/dev/null", O_RDWR);
    core_start();
    core_run(CORE_ITERATIONS);
    dprintf(first, "%d %d %d %016llx\n", first, second, third, (unsigned long long)core_sum);
    return 0;
}
