// A collector stops the world: a signal parks each thread of the team in its handler, wherever it is; the
// collector then gives memory back and changes mappings, and lets them go on.
#include "core.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_threads = 64, pages_bytes = 1 << 20 };
static pthread_t team[most_threads];
static int members;
static sem_t answers;
static volatile int generation, stop;

static void park(int number) {
    const int error = errno, now = generation;
    sigset_t awaited;
    sigfillset(&awaited);
    sigdelset(&awaited, SIGUSR2);
    sem_post(&answers);
    while (generation == now)
        sigsuspend(&awaited);
    sem_post(&answers);
    errno = error + 0 * number;
}

static void wake(int number) { (void)number; }

static void each_answers(int number) {
    for (int i = 0; i < members; ++i)
        pthread_kill(team[i], number);
    for (int i = 0; i < members; ++i)
        while (sem_wait(&answers) != 0) {
        }
}

static void* collect(void* collections) {
    char* pages = mmap(NULL, pages_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while (!stop) {
        usleep(500);
        each_answers(SIGUSR1);
        madvise(pages, pages_bytes, MADV_WILLNEED);
        mprotect(pages, 4096, PROT_READ);
        mprotect(pages, 4096, PROT_READ | PROT_WRITE);
        void* more = mmap(NULL, pages_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(more, pages_bytes);
        ++generation;
        each_answers(SIGUSR2);
        ++*(int*)collections;
    }
    return NULL;
}

int main(void) {
    core_start();
    sem_init(&answers, 0, 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGUSR2);
    action.sa_handler = park;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = wake;
    sigaction(SIGUSR2, &action, NULL);
    members = omp_get_max_threads();
#pragma omp parallel
    team[omp_get_thread_num()] = pthread_self();
    int collections = 0;
    pthread_t collector;
    expect(pthread_create(&collector, NULL, collect, &collections) == 0, "a thread");
    core_run(CORE_ITERATIONS);
    stop = 1;
    pthread_join(collector, NULL);
    expect(collections > 2, "the world was stopped");
    return core_end();
}
