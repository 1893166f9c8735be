// Sweeps that tell where they are, until somebody ends them.
// until ends | handles | ignores     what it does about SIGINT
// until waits | stays                without an access; in one line of the cache
// until raises | kills | leaves      sends itself SIGTERM: to the thread, to the process, from a thread that
//                                    does not wait for it
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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
        if (k == 20 && strcmp(mode, "raises") == 0) raise(SIGTERM), puts("goes on");
        if (k == 20 && strcmp(mode, "kills") == 0) kill(getpid(), SIGTERM), puts("goes on");
        if (k == 20 && strcmp(mode, "leaves") == 0) {
            syscall(SYS_tgkill, getpid(), getpid(), SIGTERM);
            exit(0);
        }
    }
    printf("in order: %g\n", u[1] > 0 ? 1.0 : 0.0);
    return 3;
}
