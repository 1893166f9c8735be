// Calls that start another program, and wait for its end (calls.h).
#include "calls.h"
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <wordexp.h>

extern char** environ;
static long end_of(pid_t made) {
    int status = 0;
    if (made <= 0 || waitpid(made, &status, 0) != made) return -1;
    return status;
}
static char** command(void) {
    char* all[] = {P("sh"), P("-c"), P("exit 5"), NULL};
    return (char**)place(all, sizeof all);
}
#define SPAWNED(call)                                                                                        \
    pid_t* const made = OUT(pid_t);                                                                          \
    const int error = call;                                                                                  \
    return error ? -error : end_of(*made);
CALLS(posix_spawn, SPAWNED(posix_spawn(made, P("/bin/sh"), NULL, NULL, command(), environ)))
CALLS(posix_spawnp, SPAWNED(posix_spawnp(made, P("sh"), NULL, NULL, command(), environ)))
CALL(system, system(P("exit 5")))
CALLS(popen, FILE* const from = popen(P("exit 5"), "r"); return from ? pclose(from) : -1;)
FILE* _IO_popen(const char*, const char*);
CALLS(_IO_popen, FILE* const from = _IO_popen(P("exit 5"), "r"); return from ? pclose(from) : -1;)
CALLS(wordexp, wordexp_t words; const int result = wordexp(P("$(echo a b)"), &words, 0);
      const long count = result == 0 ? (long)words.we_wordc : -1; if (result == 0) wordfree(&words);
      return count;)
// The arguments of a child are made before it is.
#define EXECUTED(call)                                                                                       \
    char* const path = P("/bin/sh");                                                                         \
    char** const all = command();                                                                            \
    const pid_t made = vfork();                                                                              \
    if (made == 0) {                                                                                         \
        call;                                                                                                \
        _exit(errno == EFAULT ? 99 : 98);                                                                    \
    }                                                                                                        \
    (void)path;                                                                                              \
    (void)all;                                                                                               \
    return end_of(made);
static char* no_environment[] = {NULL};
CALLS(execve, EXECUTED(execve(path, all, no_environment)))
CALLS(execv, EXECUTED(execv(path, all)))
CALLS(execvp, EXECUTED(execvp(path, all)))
CALLS(execvpe, EXECUTED(execvpe(path, all, no_environment)))
CALLS(execl, EXECUTED(execl(path, "sh", "-c", "exit 5", (char*)NULL)))
CALLS(execlp, EXECUTED(execlp(path, "sh", "-c", "exit 5", (char*)NULL)))
CALLS(execle, EXECUTED(execle(path, "sh", "-c", "exit 5", (char*)NULL, no_environment)))
static int shell;
CALLS(fexecve, EXECUTED(fexecve(shell, all, no_environment)))
#if __GLIBC_PREREQ(2, 34)
CALLS(execveat, EXECUTED(execveat(AT_FDCWD, path, all, no_environment, 0)))
#endif
CALLS(forkpty, int master = -1;
      const pid_t made = forkpty(&master, NULL, NULL, IN(struct winsize, .ws_row = 24));
      if (made == 0) _exit(5); const long result = end_of(made); close(master); return result;)
CALLS(
    ptrace, const pid_t made = fork(); if (made == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(5);
    } int status = 0;
    waitpid(made, &status, 0);
    const long result = WIFSTOPPED(status) ? ptrace(PTRACE_GETSIGINFO, made, NULL, OUT(siginfo_t)) : 0;
    const int error = errno; if (WIFSTOPPED(status)) {
        kill(made, SIGKILL);
        waitpid(made, &status, 0);
    } errno = error;
    return result;)

int main(int count, char** words) {
    begin_calls();
    shell = open("/bin/sh", O_RDONLY);
    return run_calls(count, words);
}
