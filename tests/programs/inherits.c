// A program that ignores SIGSEGV and blocks it, as a child of a shell or a scheduler may be left with it, and
// starts others, which inherit that.
//
// exec | vfork | fork | spawn (posix_spawn) | system | popen | failed (an exec that fails: nothing has
// changed)
#include "core.h"
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static int told(void) {
    struct sigaction action;
    sigset_t mask;
    sigaction(SIGSEGV, NULL, &action);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    return 8 + (action.sa_handler == SIG_IGN) + 2 * sigismember(&mask, SIGSEGV) +
           4 * sigismember(&mask, SIGUSR1);
}

static int start(const char* how, char* program) {
    char* arguments[] = {program, (char*)"child", NULL};
    char line[4096];
    int status = -1;
    pid_t pid = -1;
    snprintf(line, sizeof line, "exec '%s' child", program);
    if (strcmp(how, "system") == 0) return system(line);
    if (strcmp(how, "popen") == 0) return pclose(popen(line, "r"));
    if (strcmp(how, "spawn") == 0)
        expect(posix_spawn(&pid, program, NULL, NULL, arguments, environ) == 0, "spawn");
    else if (strcmp(how, "fork") == 0)
        pid = fork();
    else
        pid = vfork();
    if (pid == 0) {
        execv(program, arguments);
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "exec";
    if (strcmp(how, "child") == 0) return told();
    char program[4000];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) return 3;
    program[length] = '\0';
    signal(SIGSEGV, SIG_IGN);
    core_start();
    core_run(CORE_ITERATIONS / 2);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGSEGV);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    core_run(CORE_ITERATIONS / 4);
    fflush(stdout);
    char* again[] = {program, (char*)"child", NULL};
    if (strcmp(how, "exec") == 0) execv(program, again);
    if (strcmp(how, "failed") == 0)
        expect(execv("/nowhere", again) == -1, "no such program");
    else
        printf("child %d\n", WEXITSTATUS(start(how, program)));
    printf("here %d\n", told());
    core_run(CORE_ITERATIONS / 2);
    return core_end();
}
