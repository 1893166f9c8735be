// Sweeps that tell where they are, until somebody ends them.
// until ends | handles | ignores | waits | stays     what it does about SIGINT, or: it waits without an
// access;
//                                                    stays: in one line of the cache
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { count = 1 << 17 };

static volatile sig_atomic_t stop;
static void handler(int number) { stop = number; }

int main(int argc, char** argv) {
    const char* mode = argc > 1 ? argv[1] : "ends";
    if (strcmp(mode, "handles") == 0) signal(SIGINT, handler);
    if (strcmp(mode, "ignores") == 0) signal(SIGINT, SIG_IGN);
    double* u = malloc(count * sizeof *u);
    for (int i = 0; i < count; ++i)
        u[i] = i;
    for (int k = 0; !stop; ++k) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < count; ++i)
            u[i] += 1;
        if (k % 10 == 0) {
            printf("sweep %d\n", k);
            fflush(stdout);
        }
        while (k == 20 && strcmp(mode, "waits") == 0)
            pause();
        while (k == 20 && strcmp(mode, "stays") == 0)
            ++*(volatile double*)u;
    }
    printf("in order: %g\n", u[1] > 0 ? 1.0 : 0.0);
    return 3;
}
