// Handlers of other signals with a full mask, SIGSEGV included, that touch the arrays at any time, also in a
// region.
//
// itimer | timer (timer_create) | thread (SIGEV_THREAD) | suspend (sigsuspend with a full mask) | profile
// (SIGPROF)
#include "core.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static volatile int alarms;

static void touch(void) {
    static volatile long at;
    for (int i = 0; i < 8; ++i) {
        at = (at + 512 * 37) % CORE_WORDS;
        sink = core_a[at] + core_b[at] + core_c[at];
    }
    alarms = 1;
}

static void on_alarm(int number) {
    (void)number;
    touch();
}

static void on_timer(union sigval value) {
    (void)value;
    touch();
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "itimer";
    core_start();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    const int number = strcmp(how, "profile") == 0 ? SIGPROF : SIGALRM;
    sigaction(number, &action, NULL);
    timer_t timer;
    const int posix = strcmp(how, "timer") == 0 || strcmp(how, "thread") == 0;
    if (posix) {
        struct sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = strcmp(how, "thread") == 0 ? SIGEV_THREAD : SIGEV_SIGNAL;
        event.sigev_signo = SIGALRM;
        if (event.sigev_notify == SIGEV_THREAD) event.sigev_notify_function = on_timer;
        expect(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
        struct itimerspec every = {{0, 1000000}, {0, 1000000}};
        timer_settime(timer, 0, &every, NULL);
    } else {
        struct itimerval every = {{0, 700}, {0, 700}};
        setitimer(number == SIGPROF ? ITIMER_PROF : ITIMER_REAL, &every, NULL);
    }
    for (int i = 0; i < CORE_ITERATIONS; ++i) {
        core_step(i);
        if (strcmp(how, "suspend") == 0) {
#pragma omp parallel
#pragma omp master
            {
                sigset_t all;
                sigfillset(&all);
                sigdelset(&all, SIGALRM);
                sigsuspend(&all); // the handler runs under this mask
            }
        }
    }
    // On a busy machine the first notification may come after all of this; that of SIGPROF may never come.
    for (int i = 0; number == SIGALRM && !alarms && i < 10000; ++i)
        usleep(1000);
    if (posix) {
        timer_delete(timer);
    } else {
        struct itimerval never = {{0, 0}, {0, 0}};
        setitimer(number == SIGPROF ? ITIMER_PROF : ITIMER_REAL, &never, NULL);
    }
    struct sigaction now;
    sigaction(number, NULL, &now);
    expect(sigismember(&now.sa_mask, SIGSEGV) == 1, "the mask of the handler is full, as it was set");
    expect(now.sa_handler == on_alarm, "the handler is the one that was set");
    if (strcmp(how, "thread") == 0) usleep(20000); // a last notification may be under way
    if (number == SIGALRM) // the processor time of a short run may be too little for SIGPROF
        printf("alarms %d\n", alarms);
    return core_end();
}
