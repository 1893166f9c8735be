// Handlers of other signals with a full mask, SIGSEGV included, that touch the arrays at any time, also in a
// region.
//
// itimer | timer (timer_create) | thread (SIGEV_THREAD) | suspend (sigsuspend with a full mask) | profile
// (SIGPROF) | calls (the handler makes calls by which the kernel may use any memory, or that change mappings)
// | fork (the handler forks, and waits for its child)
#include "core.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
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

static void on_forking_alarm(int number) {
    const int before = errno;
    on_alarm(number);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    errno = before;
}

static void* own_pages;

static void on_calling_alarm(int number) {
    const int before = errno;
    on_alarm(number);
    syscall(SYS_getppid);
    struct rlimit limit;
    prlimit(0, RLIMIT_CORE, NULL, &limit);
    madvise(own_pages, 1 << 20, MADV_WILLNEED);
    mprotect(own_pages, 4096, PROT_READ);
    mprotect(own_pages, 4096, PROT_READ | PROT_WRITE);
    errno = before;
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
    action.sa_handler = strcmp(how, "calls") == 0  ? on_calling_alarm
                        : strcmp(how, "fork") == 0 ? on_forking_alarm
                                                   : on_alarm;
    own_pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
        const int microseconds = strcmp(how, "fork") == 0 ? 20000 : 700; // more than a fork takes
        struct itimerval every = {{0, microseconds}, {0, microseconds}};
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
    expect(now.sa_handler == action.sa_handler, "the handler is the one that was set");
    if (strcmp(how, "thread") == 0) usleep(20000); // a last notification may be under way
    if (number == SIGALRM) // the processor time of a short run may be too little for SIGPROF
        printf("alarms %d\n", alarms);
    return core_end();
}
