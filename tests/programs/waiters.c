// Threads outside OpenMP that wait on objects in a watched array, as loggers and I/O threads do, get signals
// while regions run, and are woken from within one. After a signal's handler the kernel looks at the object
// again.
//
// all (but the last of the kinds in the table below) | one of them | stop (the process is stopped and
// continued instead)
#include "core.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

// Each on a page of its own; the smaller ones across the pages would be no harder.
static char* block;
#define AT(type, page) ((type*)(void*)(block + (page) * 65536L))
#define SEMAPHORE AT(sem_t, 1)
#define MUTEX AT(pthread_mutex_t, 2)
#define CONDITION AT(pthread_cond_t, 3)
#define RWLOCK AT(pthread_rwlock_t, 4)
#define BARRIER AT(pthread_barrier_t, 5)
#define ONCE AT(pthread_once_t, 6)
#define WORD AT(int, 7)
#define MTX AT(mtx_t, 8)
#define CND AT(cnd_t, 9)
#define UNTIL AT(struct timespec, 10)
#define HELD AT(pthread_mutex_t, 11) // guards `woken`
enum { pages = 12, rounds = 5 };

static int ends[2]; // keeps helpers waiting
static int woken;
static int result;
static pthread_t helper;

static void on_signal(int number) { (void)number; }

static sem_t begun;
static void keep_waiting(void) {
    char byte;
    sem_post(&begun);
    expect(read(ends[0], &byte, 1) == 1, "read");
}
static void* lasts(void* nothing) {
    keep_waiting();
    return nothing;
}
static void* holds(void* nothing) { // and ends without unlocking
    expect(pthread_mutex_lock(MUTEX) == 0, "lock");
    keep_waiting();
    return nothing;
}
static void* begins(void* nothing) {
    pthread_once(ONCE, keep_waiting);
    return nothing;
}
static void let_go(void) { expect(write(ends[1], "x", 1) == 1, "write"); }

static void start(void* (*body)(void*)) {
    pthread_create(&helper, NULL, body, NULL);
    while (sem_wait(&begun) != 0) {
    }
}
static void robust(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(MUTEX, &attributes);
    start(holds);
}
static void inherit(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(MUTEX, &attributes);
    pthread_mutex_lock(MUTEX);
}

static void no_set_up(void) {}
static void lock_mutex(void) { pthread_mutex_lock(MUTEX); }
static void unlock_mutex(void) { pthread_mutex_unlock(MUTEX); }
static void lock_mtx(void) { mtx_lock(MTX); }
static void unlock_mtx(void) { mtx_unlock(MTX); }
static void lock_write(void) { pthread_rwlock_wrlock(RWLOCK); }
static void unlock_write(void) { pthread_rwlock_unlock(RWLOCK); }
static void start_once(void) {
    memset(ONCE, 0, sizeof *ONCE);
    start(begins);
}
static void start_lasting(void) { start(lasts); }
static void clear_word(void) { *WORD = 0; }
static void post(void) { sem_post(SEMAPHORE); }
static void wait_at_barrier(void) { pthread_barrier_wait(BARRIER); }
static void wake_condition(void) {
    pthread_mutex_lock(HELD);
    woken = 1;
    pthread_cond_signal(CONDITION);
    pthread_cond_broadcast(CONDITION);
    pthread_mutex_unlock(HELD);
}
static void wake_cnd(void) {
    mtx_lock(MTX);
    woken = 1;
    cnd_signal(CND);
    cnd_broadcast(CND);
    mtx_unlock(MTX);
}
static void wake_word(void) {
    __atomic_store_n(WORD, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, WORD, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int again(int error) { return error == -1 && errno == EINTR; }
static int wait_semaphore(void) {
    int error;
    while (again(error = sem_wait(SEMAPHORE))) {
    }
    return error;
}
static int wait_semaphore_timed(void) {
    int error;
    while (again(error = sem_timedwait(SEMAPHORE, UNTIL))) {
    }
    return error;
}
static int wait_semaphore_clock(void) {
    int error;
    while (again(error = sem_clockwait(SEMAPHORE, CLOCK_REALTIME, UNTIL))) {
    }
    return error;
}
static int then_unlock_mutex(int error) { return error ? error : pthread_mutex_unlock(MUTEX); }
static int wait_mutex(void) { return then_unlock_mutex(pthread_mutex_lock(MUTEX)); }
static int wait_mutex_timed(void) { return then_unlock_mutex(pthread_mutex_timedlock(MUTEX, UNTIL)); }
static int wait_mutex_clock(void) {
    return then_unlock_mutex(pthread_mutex_clocklock(MUTEX, CLOCK_REALTIME, UNTIL));
}
static int wait_robust(void) {
    const int error = pthread_mutex_lock(MUTEX);
    if (error == EOWNERDEAD) pthread_mutex_consistent(MUTEX);
    pthread_mutex_unlock(MUTEX);
    return error;
}
static int then_unlock_mtx(int error) { return error != thrd_success || mtx_unlock(MTX) != thrd_success; }
static int wait_mtx(void) { return then_unlock_mtx(mtx_lock(MTX)); }
static int wait_mtx_timed(void) { return then_unlock_mtx(mtx_timedlock(MTX, UNTIL)); }
static int then_unlock_rwlock(int error) { return error ? error : pthread_rwlock_unlock(RWLOCK); }
static int wait_read(void) { return then_unlock_rwlock(pthread_rwlock_rdlock(RWLOCK)); }
static int wait_read_timed(void) { return then_unlock_rwlock(pthread_rwlock_timedrdlock(RWLOCK, UNTIL)); }
static int wait_read_clock(void) {
    return then_unlock_rwlock(pthread_rwlock_clockrdlock(RWLOCK, CLOCK_REALTIME, UNTIL));
}
static int wait_write(void) { return then_unlock_rwlock(pthread_rwlock_wrlock(RWLOCK)); }
static int wait_write_timed(void) { return then_unlock_rwlock(pthread_rwlock_timedwrlock(RWLOCK, UNTIL)); }
static int wait_write_clock(void) {
    return then_unlock_rwlock(pthread_rwlock_clockwrlock(RWLOCK, CLOCK_REALTIME, UNTIL));
}
#define UNTIL_WOKEN(lock, unlock, wait)                                                                      \
    int error = 0;                                                                                           \
    lock;                                                                                                    \
    while (!woken && error == 0)                                                                             \
        error = wait;                                                                                        \
    unlock;                                                                                                  \
    return error;
#define WITH_HELD(wait) UNTIL_WOKEN(pthread_mutex_lock(HELD), pthread_mutex_unlock(HELD), wait)
#define WITH_MTX(wait) UNTIL_WOKEN(mtx_lock(MTX), mtx_unlock(MTX), wait)
static int wait_condition(void) { WITH_HELD(pthread_cond_wait(CONDITION, HELD)) }
static int wait_condition_timed(void) { WITH_HELD(pthread_cond_timedwait(CONDITION, HELD, UNTIL)) }
static int wait_condition_clock(void) {
    WITH_HELD(pthread_cond_clockwait(CONDITION, HELD, CLOCK_REALTIME, UNTIL))
}
static int wait_cnd(void) { WITH_MTX(cnd_wait(CND, MTX)) }
static int wait_cnd_timed(void) { WITH_MTX(cnd_timedwait(CND, MTX, UNTIL)) }
static int wait_barrier(void) {
    const int error = pthread_barrier_wait(BARRIER);
    return error == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : error;
}
static int wait_once(void) { return pthread_once(ONCE, keep_waiting); }
static int wait_word(void) {
    long error = 0;
    while (__atomic_load_n(WORD, __ATOMIC_SEQ_CST) == 0 && error == 0) {
        error = syscall(SYS_futex, WORD, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        if (error == -1 && (errno == EINTR || errno == EAGAIN)) error = 0;
    }
    return error == 0 ? 0 : errno;
}
static int wait_join_timed(void) { return pthread_timedjoin_np(helper, NULL, UNTIL); }
static int wait_join_clock(void) { return pthread_clockjoin_np(helper, NULL, CLOCK_REALTIME, UNTIL); }

static const struct kind {
    const char* name;
    void (*set_up)(void);
    int (*wait)(void);
    void (*wake)(void);
    int expected;
    int helps; // another thread that is to be joined
} kinds[] = {
    {"semaphore", no_set_up, wait_semaphore, post, 0, 0},
    {"semaphore_timed", no_set_up, wait_semaphore_timed, post, 0, 0},
    {"semaphore_clock", no_set_up, wait_semaphore_clock, post, 0, 0},
    {"mutex", lock_mutex, wait_mutex, unlock_mutex, 0, 0},
    {"mutex_timed", lock_mutex, wait_mutex_timed, unlock_mutex, 0, 0},
    {"mutex_clock", lock_mutex, wait_mutex_clock, unlock_mutex, 0, 0},
    {"inherit", inherit, wait_mutex, unlock_mutex, 0, 0},
    {"robust", robust, wait_robust, let_go, EOWNERDEAD, 1},
    {"mtx", lock_mtx, wait_mtx, unlock_mtx, 0, 0},
    {"mtx_timed", lock_mtx, wait_mtx_timed, unlock_mtx, 0, 0},
    {"read", lock_write, wait_read, unlock_write, 0, 0},
    {"read_timed", lock_write, wait_read_timed, unlock_write, 0, 0},
    {"read_clock", lock_write, wait_read_clock, unlock_write, 0, 0},
    {"write", lock_write, wait_write, unlock_write, 0, 0},
    {"write_timed", lock_write, wait_write_timed, unlock_write, 0, 0},
    {"write_clock", lock_write, wait_write_clock, unlock_write, 0, 0},
    {"condition", no_set_up, wait_condition, wake_condition, 0, 0},
    {"condition_timed", no_set_up, wait_condition_timed, wake_condition, 0, 0},
    {"condition_clock", no_set_up, wait_condition_clock, wake_condition, 0, 0},
    {"cnd", no_set_up, wait_cnd, wake_cnd, 0, 0},
    {"cnd_timed", no_set_up, wait_cnd_timed, wake_cnd, 0, 0},
    {"barrier", no_set_up, wait_barrier, wait_at_barrier, 0, 0},
    {"once", start_once, wait_once, let_go, 0, 1},
    {"futex", clear_word, wait_word, wake_word, 0, 0},
    {"join_timed", start_lasting, wait_join_timed, let_go, 0, 0},
    {"join_clock", start_lasting, wait_join_clock, let_go, 0, 0},
    {"stop", no_set_up, wait_semaphore, post, 0, 0},
};

static void* waiter(void* kind) {
    result = ((const struct kind*)kind)->wait();
    return NULL;
}

// A process of its own stops this one and lets it continue, when it is told to.
static int orders[2], done[2];
static void stopper(void) {
    char byte;
    close(orders[1]); // it ends with the other one
    while (read(orders[0], &byte, 1) == 1 && byte == 's') {
        kill(getppid(), SIGSTOP);
        usleep(3000);
        kill(getppid(), SIGCONT);
        if (write(done[1], "x", 1) != 1) break;
    }
    _exit(0);
}

static int waits_end(const struct kind* kind) {
    const int stops = strcmp(kind->name, "stop") == 0;
    int good = 0;
    for (int i = 0; i < rounds; ++i) {
        core_step(i);
        woken = 0;
        kind->set_up();
        clock_gettime(CLOCK_REALTIME, UNTIL);
        UNTIL->tv_sec += 100;
        pthread_t thread;
        pthread_create(&thread, NULL, waiter, (void*)kind);
        usleep(3000); // it waits by now, most of the times
#pragma omp parallel for num_threads(3)
        for (long at = 0; at < pages * 65536L; at += 512) // ordinary use
            if (at % 65536 >= 4096) block[at] = (char)(block[at] + 1);
#pragma omp parallel num_threads(3)
        {
            if (omp_get_thread_num() == 0) { // who has locked must unlock
                for (int times = 0; times < 3 && !stops; ++times) {
                    pthread_kill(thread, SIGUSR1);
                    usleep(300);
                }
                if (stops) {
                    char byte;
                    expect(write(orders[1], "s", 1) == 1 && read(done[0], &byte, 1) == 1, "stopped");
                }
                kind->wake();
            }
            core_read_share();
        }
        pthread_join(thread, NULL);
        if (kind->helps) pthread_join(helper, NULL);
        good += result == kind->expected;
    }
    printf("%s: %d waits ended as they should\n", kind->name, good);
    return good == rounds;
}

int main(int count, char** arguments) {
    const char* how = count > 1 ? arguments[1] : "all";
    pid_t child = 0;
    expect(pipe(ends) == 0 && pipe(orders) == 0 && pipe(done) == 0, "pipes");
    if ((child = fork()) == 0) stopper();
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    core_start();
    block = (char*)aligned_alloc(65536, pages * 65536L);
    memset(block, 0, pages * 65536L);
    sem_init(&begun, 0, 0);
    sem_init(SEMAPHORE, 0, 0);
    pthread_mutex_init(HELD, NULL);
    pthread_cond_init(CONDITION, NULL);
    pthread_rwlock_init(RWLOCK, NULL);
    pthread_barrier_init(BARRIER, NULL, 2);
    mtx_init(MTX, mtx_timed);
    cnd_init(CND);
    core_run(10);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        const int all = strcmp(how, "all") == 0 && strcmp(kinds[i].name, "stop") != 0;
        if (!all && strcmp(how, kinds[i].name) != 0) continue;
        pthread_mutex_init(MUTEX, NULL);
        expect(waits_end(&kinds[i]), "each wait ends as it should");
    }
    expect(write(orders[1], "e", 1) == 1, "end");
    waitpid(child, NULL, 0);
    pthread_cond_destroy(CONDITION);
    pthread_barrier_destroy(BARRIER);
    cnd_destroy(CND);
    return core_end();
}
