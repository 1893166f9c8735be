// Other programs started from inside a region, with their arguments in the arrays: vfork | spawn | system |
// popen
#include "core.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

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
