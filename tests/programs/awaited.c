// A program that blocks all signals and takes them when it is ready, as servers do; one of them is SIGSEGV,
// sent by kill.
//
// sigwait | pending (looked at only) | unblock (its handler runs then) | thread (another thread waits for it)
#include "core.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void on_signal(int number) { handled += number; }

static void* takes(void* got) {
    sigset_t all;
    sigfillset(&all);
    sigwait(&all, (int*)got);
    return NULL;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "sigwait";
    sigset_t all, now;
    pthread_t thread;
    int got = 0;
    signal(SIGSEGV, on_signal);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    core_start();
    if (strcmp(how, "thread") == 0) pthread_create(&thread, NULL, takes, &got);
    core_run(CORE_ITERATIONS);
    kill(getpid(), SIGSEGV);
    core_run(CORE_ITERATIONS / 4);
    expect(handled == 0, "blocked");
    if (strcmp(how, "thread") == 0)
        pthread_join(thread, NULL);
    else
        expect(sigpending(&now) == 0 && sigismember(&now, SIGSEGV) == 1, "pending");
    if (strcmp(how, "sigwait") == 0) {
        sigwait(&all, &got);
        expect(sigpending(&now) == 0 && sigismember(&now, SIGSEGV) == 0, "taken");
    }
    if (strcmp(how, "unblock") == 0) {
        sigemptyset(&now);
        sigaddset(&now, SIGSEGV);
        sigprocmask(SIG_UNBLOCK, &now, NULL);
        got = handled;
    }
    printf("got %d\n", got);
    return core_end();
}
