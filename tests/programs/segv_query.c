// A program that looks at its own signal state, and must find what it put there: dispositions, masks,
// alternate stacks.
#include "core.h"
#include <pthread.h>
#include <signal.h>

static void handler(int number) { (void)number; }
static void handler_info(int number, siginfo_t* info, void* context) {
    (void)number, (void)info, (void)context;
}
static char stack[65536];

static void look(int stage) {
    struct sigaction action;
    expect(sigaction(SIGSEGV, NULL, &action) == 0, "query");
    if (stage == 0) {
        expect(action.sa_handler == SIG_DFL, "default at first");
        expect(!(action.sa_flags & SA_SIGINFO), "no flags at first");
    } else if (stage == 1) {
        expect(action.sa_handler == handler, "handler set by signal()");
    } else {
        expect(action.sa_sigaction == handler_info && (action.sa_flags & SA_SIGINFO),
               "handler with information");
        expect(!(action.sa_flags & SA_ONSTACK), "no alternate stack asked for");
        expect(sigismember(&action.sa_mask, SIGUSR1) == 1, "mask holds USR1");
        expect(sigismember(&action.sa_mask, SIGUSR2) == 0, "mask without USR2");
    }
}

int main(void) {
    core_start();
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        const int stage = i * 3 / CORE_ITERATIONS;
        if (stage == 1)
            expect(signal(SIGSEGV, handler) ==
                       (i * 3 / CORE_ITERATIONS == (i - 1) * 3 / CORE_ITERATIONS ? handler : SIG_DFL),
                   "signal() returns the one before");
        if (stage == 2) {
            struct sigaction action, before;
            memset(&action, 0, sizeof action);
            sigemptyset(&action.sa_mask);
            sigaddset(&action.sa_mask, SIGUSR1);
            action.sa_sigaction = handler_info;
            action.sa_flags = SA_SIGINFO;
            expect(sigaction(SIGSEGV, &action, &before) == 0, "sigaction");
            expect(before.sa_handler == handler || before.sa_sigaction == handler_info,
                   "sigaction returns the one before");
        }
        look(stage);
#pragma omp parallel
        {
#pragma omp single nowait
            look(stage);
            stack_t here;
            expect(sigaltstack(NULL, &here) == 0, "sigaltstack query");
            expect(here.ss_flags == SS_DISABLE, "no alternate stack of the program's");
            sigset_t mask, full;
            sigfillset(&full);
            expect(pthread_sigmask(SIG_BLOCK, &full, &mask) == 0, "block all");
            expect(sigismember(&mask, SIGSEGV) == 0 && sigismember(&mask, SIGUSR1) == 0,
                   "mask before is empty");
            expect(pthread_sigmask(SIG_SETMASK, NULL, &full) == 0, "read the mask");
            expect(sigismember(&full, SIGSEGV) == 1 && sigismember(&full, SIGUSR1) == 1, "mask is full");
            expect(pthread_sigmask(SIG_SETMASK, &mask, &full) == 0, "restore the mask");
            expect(sigismember(&full, SIGSEGV) == 1, "mask was full");
        }
    }
    stack_t mine = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = 0}, seen;
    expect(sigaltstack(&mine, NULL) == 0, "set an alternate stack");
    core_run(8);
    expect(sigaltstack(NULL, &seen) == 0 && seen.ss_sp == stack && seen.ss_size == sizeof stack,
           "it is still there");
    return core_end();
}
