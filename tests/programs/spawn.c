// Other programs started from inside a region, with their arguments in the arrays: vfork | spawn | system |
// popen | clone (a child that shares the memory, on a stack in a block of the heap)
#include "core.h"
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

enum { stack_bytes = 1 << 18 };
static char* stack;

static int exit_3(void* text) {
    const char* digit = strchr((const char*)text, '3');
    return digit ? *digit - '0' : 45;
}

// One start; `text` lies in a watched array.
static int start(const char* how, char* text) {
    static char* const shell = (char*)"/bin/sh";
    char* arguments[] = {shell, (char*)"-c", text, NULL};
    int status = -1;
    pid_t pid = -1;
    if (strcmp(how, "system") == 0) return system(text);
    if (strcmp(how, "popen") == 0) {
        FILE* pipe = popen(text, "r");
        if (!pipe) return -2;
        char line[64] = "";
        expect(fgets(line, sizeof line, pipe) != NULL && strcmp(line, "spawned\n") == 0,
               "output of the child");
        return pclose(pipe);
    }
    if (strcmp(how, "spawn") == 0) {
        if (posix_spawn(&pid, shell, NULL, NULL, arguments, environ) != 0) return -3;
    } else if (strcmp(how, "clone") == 0) {
        pid = clone(exit_3, stack + stack_bytes, CLONE_VM | SIGCHLD, text);
    } else {
        pid = vfork();
        if (pid == 0) {
            execve(shell, arguments, environ);
            _exit(44);
        }
    }
    return waitpid(pid, &status, 0) == pid ? status : -4;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "vfork";
    core_start();
    stack = (char*)malloc(stack_bytes);
    memset(stack, 0, stack_bytes);
    uint64_t seen = 0;
    int statuses = 0;
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        char* text = (char*)(core_b + 1000 * i + 500); // somewhere in a page of the array
        if (i % 5 == 4) {
            strcpy(text, strcmp(how, "popen") == 0 ? "echo spawned; exit 3" : "exit 3");
#pragma omp parallel num_threads(3) reduction(+ : seen)
            {
                if (omp_get_thread_num() == i % 3) {
                    const int status = start(how, text);
                    statuses += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
                }
                seen += core_read_share();
            }
        }
    }
    expect(wait(NULL) == -1, "no other children");
    printf("statuses %d seen %llx\n", statuses, (unsigned long long)seen);
    return core_end();
}
