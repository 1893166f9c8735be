// Threads outside OpenMP on a machine of four CPUs, each a node: what they are told of CPUs, where they run
// when they bind themselves, and phases that are marked. An argument: nothing binds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { workers = 3, megabyte = 1 << 20 };
static char* arrays[workers];
static int binds = 1;

static void expect(int true_one, const char* what) {
    if (!true_one) printf("wrong: %s\n", what);
}

static void sweep(char* array) {
    for (int i = 0; i < megabyte; i += 64)
        array[i] += 1;
}

// Worker n on CPU n + 1; each has a MiB of its own, touched here first.
static void* work(void* argument) {
    const int number = (int)((char**)argument - arrays);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(number + 1, &set);
    if (binds) {
        const int error = number == 0 ? sched_setaffinity(0, sizeof set, &set)
                                      : pthread_setaffinity_np(pthread_self(), sizeof set, &set);
        expect(error == 0, "a thread may bind itself");
        expect(sched_getcpu() == number + 1, "and is there");
        cpu_set_t told;
        expect(sched_getaffinity(0, sizeof told, &told) == 0 && CPU_EQUAL(&told, &set), "and is told so");
    }
    sweep(arrays[number]);
    if (binds) {
        CPU_ZERO(&set);
        CPU_SET(0, &set);
        expect(sched_setaffinity(0, sizeof set, &set) == 0, "it may go elsewhere");
        expect(sched_getcpu() == 0, "and went");
    }
    sweep(arrays[number]);
    return NULL;
}

int main(int argc, char** argv) {
    (void)argv;
    binds = argc == 1;
    cpu_set_t set;
    expect(sched_getaffinity(getpid(), sizeof set, &set) == 0 && CPU_COUNT(&set) == 4, "four CPUs");
    expect(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0 && CPU_COUNT(&set) == 4, "so, too");
    expect(sysconf(_SC_NPROCESSORS_ONLN) == 4 && sysconf(_SC_NPROCESSORS_CONF) == 4, "four processors");
    expect(sysconf(_SC_PAGESIZE) > 0, "the rest of sysconf is as it was");
    CPU_ZERO(&set);
    CPU_SET(17, &set);
    errno = 0;
    expect(sched_setaffinity(0, sizeof set, &set) == -1 && errno == EINVAL, "no CPU 17");
    expect(pthread_setaffinity_np(pthread_self(), sizeof set, &set) == EINVAL, "nor so");
    expect(sched_setaffinity(1 << 29, sizeof set, &set) == -1, "of others, the kernel is asked");
    errno = 0;
    expect(sched_getaffinity(0, 0, &set) == -1 && errno == EINVAL, "no room");

    void (*mark)(int);
    *(void**)&mark = dlsym(RTLD_DEFAULT, "homing_simulator_mark");
    pthread_t threads[workers];
    for (int i = 0; i < workers; ++i)
        arrays[i] = aligned_alloc(4096, megabyte);
    if (mark) mark(7);
    for (int i = 0; i < workers; ++i) {
        pthread_create(&threads[i], NULL, work, &arrays[i]);
        pthread_join(threads[i], NULL); // one after the other: so numbers are given again
    }
    if (mark) mark(0);
    sweep(arrays[0]);
    if (mark) mark(9), mark(7), mark(600), mark(-1);
    sweep(arrays[1]);
    printf("done\n");
    return 0;
}
