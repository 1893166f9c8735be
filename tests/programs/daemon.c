// A program that becomes a daemon as servers do (fork, setsid, fork, descriptors closed), works there, and
// reports through a file; the first process waits for it only to make the test deterministic.
#include "core.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    if (pipe(ends) != 0) return 2;
    const pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        umask(0);
        (void)!chdir("/");
        for (int number = 0; number < 1024; ++number)
            if (number != ends[1]) close(number);
        open("/dev/null", O_RDWR);
        (void)!dup(0);
        (void)!dup(0);
        core_start(); // the first region of all is here, in a grandchild
        core_run(CORE_ITERATIONS);
        (void)!write(ends[1], &core_sum, sizeof core_sum);
        _exit(0);
    }
    close(ends[1]);
    waitpid(pid, NULL, 0);
    uint64_t sum = 0;
    if (read(ends[0], &sum, sizeof sum) != sizeof sum) puts("the daemon said nothing");
    printf("daemon %016llx\n", (unsigned long long)sum);
    return 0;
}
