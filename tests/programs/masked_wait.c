// Calls that wait under a mask of the program's with SIGSEGV in it, by name and by number. A handler that
// runs while they wait works on the arrays of a region.
//
// ppoll | pselect | epoll | suspend, and with "number" behind: by syscall()
#include "core.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static volatile int handled, over;
static const char* how;
static int by_number, polled;

static void on_signal(int number) {
    (void)number;
    uint64_t sum = 0;
    for (long i = 0; i < CORE_WORDS; i += 512)
        sum += core_a[i] + core_b[i];
    sink = sum;
    handled = 1;
}

static void wait_masked(const sigset_t* mask) {
    const struct timespec soon = {0, 2000000};
    struct epoll_event event;
    if (strcmp(how, "ppoll") == 0) {
        struct timespec left = soon; // the system call writes it
        if (by_number)
            syscall(SYS_ppoll, NULL, 0, &left, mask, (size_t)8);
        else
            ppoll(NULL, 0, &soon, mask);
    } else if (strcmp(how, "pselect") == 0) {
        struct timespec left = soon;
        const struct {
            const sigset_t* set;
            size_t bytes;
        } given = {mask, 8};
        if (by_number)
            syscall(SYS_pselect6, 0, NULL, NULL, NULL, &left, &given);
        else
            pselect(0, NULL, NULL, NULL, &soon, mask);
    } else if (strcmp(how, "epoll") == 0) {
        if (by_number)
            syscall(SYS_epoll_pwait, polled, &event, 1, 2, mask, (size_t)8);
        else
            epoll_pwait(polled, &event, 1, 2, mask);
    } else if (by_number) {
        syscall(SYS_rt_sigsuspend, mask, (size_t)8);
    } else {
        sigsuspend(mask);
    }
}

static void* waits(void* argument) {
    sigset_t one, mask;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    sigfillset(&mask);
    sigdelset(&mask, SIGUSR1);
    while (!over)
        wait_masked(&mask);
    return argument;
}

static void* sends(void* thread) {
    while (!over) {
        usleep(1500);
        pthread_kill(*(pthread_t*)thread, SIGUSR1);
    }
    return thread;
}

int main(int count, char** arguments) {
    how = count > 1 ? arguments[1] : "ppoll";
    by_number = count > 2;
    polled = epoll_create1(0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    core_start();
    pthread_t waiter, sender;
    pthread_create(&waiter, NULL, waits, NULL);
    pthread_create(&sender, NULL, sends, &waiter);
    core_run(CORE_ITERATIONS);
    for (int i = 0; !handled && i < 10000; ++i)
        usleep(1000);
    expect(handled, "a handler has run");
    over = 1;
    pthread_join(sender, NULL);
    pthread_kill(waiter, SIGUSR1); // sigsuspend() knows no time
    pthread_join(waiter, NULL);
    return core_end();
}
