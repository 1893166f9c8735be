// Children: forked in serial code and inside regions, that read and write their copy of the arrays, and end.
//
// serial | region | write (the child also writes everything) | exec (fork and exec) | grandchild | openmp
// (the child runs regions of its own; libomp only) | shared (child and parent work on shared memory) | exit
// (the child calls exit, not _exit) | _Fork | clone (both without fork handlers, and exit)
// | vfork-defaults | _Fork-defaults (the child first gives every signal back its default action)
#include "core.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* how;
static uint64_t* shared;
static int past_handlers;

// Reads core_b, which nobody writes at the time of the fork.
static uint64_t all_of_b(void) {
    uint64_t sum = 0;
    for (long i = 0; i < CORE_WORDS; ++i)
        sum = sum * 3 + core_b[i];
    return sum;
}

static void child(void) {
    if (strstr(how, "-defaults"))
        for (int number = 1; number < 32; ++number)
            signal(number, SIG_DFL);
    uint64_t sum = all_of_b();
    if (strcmp(how, "write") == 0) {
        for (long i = 0; i < CORE_WORDS; ++i)
            core_a[i] = core_c[i] = core_b[i] = (uint64_t)i;
        for (long i = 0; i < CORE_WORDS; ++i)
            if (core_a[i] + core_b[i] != 2 * core_c[i]) _exit(41);
        free(core_a);
        free(core_b);
    }
    if (strcmp(how, "openmp") == 0) {
        core_run(8);
        sum = all_of_b();
    }
    if (strcmp(how, "grandchild") == 0) {
        const pid_t pid = fork();
        if (pid == 0) _exit(all_of_b() == sum ? 17 : 18);
        int status;
        if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 17) _exit(42);
    }
    *shared = sum;
    if (strcmp(how, "exec") == 0) {
        execl("/bin/sh", "sh", "-c", "exit 40", (char*)NULL);
        _exit(43);
    }
    if (strcmp(how, "exit") == 0 || past_handlers) exit(40);
    _exit(40);
}

static uint64_t fork_one(void) {
    fflush(stdout);
    *shared = 0;
    const pid_t pid = strcmp(how, "vfork-defaults") == 0 ? vfork()
                      : strncmp(how, "_Fork", 5) == 0    ? _Fork()
                      : strcmp(how, "clone") == 0        ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
                                                         : fork();
    if (pid < 0) return 0;
    if (pid == 0) child();
    int status = 0;
    const pid_t ended = waitpid(pid, &status, 0);
    if (ended != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 40)
        printf("child ended with status %x\n", (unsigned)status);
    return *shared;
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "serial";
    const int inside = strcmp(how, "region") == 0 || strcmp(how, "write") == 0 ||
                       strcmp(how, "grandchild") == 0 || strcmp(how, "exec") == 0;
    past_handlers = strcmp(how, "_Fork") == 0 || strcmp(how, "clone") == 0;
    shared = (uint64_t*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    core_start();
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (past_handlers) { // much for the parent's record
            for (int k = 0; k < 8; ++k) {
                char* block = (char*)malloc(200000 + (size_t)(8 * i + k) * 64);
                memset(block, 1, 200000);
                core_step(i);
                free(block);
            }
        }
        if (i % 4 != 3) continue;
        uint64_t here = 0;
        if (inside) {
#pragma omp parallel num_threads(3) reduction(+ : seen)
            {
                if (omp_get_thread_num() == i % 3) here = fork_one();
                seen += core_read_share();
            }
        } else {
            here = fork_one();
        }
        expect(here != 0, "the child wrote its sum");
        if (strcmp(how, "openmp") != 0) expect(here == all_of_b(), "the child saw the same as the parent");
        all = all * 7 + here;
    }
    expect(wait(NULL) == -1, "no other children");
    printf("children %016llx seen %llx\n", (unsigned long long)all, (unsigned long long)seen);
    return core_end();
}
