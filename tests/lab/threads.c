// A program without OpenMP whose array is registered (UPMlib's call): four threads, each on a CPU of its own,
// sweep their quarters of it, which the main thread touched first. Ends when at most half of its pages are
// where no thread of theirs runs, or after 60 s. Prints where each quarter's pages are.
#define _GNU_SOURCE
#include <homing/homing.h>

#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 2048, NODES = 4, PART = PAGES / NODES };
static char* array;
static int nodes[PAGES];
static atomic_int stop;
static long sweeps[NODES];

static int run_on(long number) {
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(number, &cpu);
    return pthread_setaffinity_np(pthread_self(), sizeof cpu, &cpu) == 0;
}

static void* sweep(void* number) {
    const long me = (long)number;
    if (!run_on(me)) return NULL;
    for (char* mine = array + me * PART * PAGE; !atomic_load(&stop); ++sweeps[me])
        for (long i = 0; i < PART * PAGE; i += 64)
            ++mine[i];
    return NULL;
}

/// Has homing stated where pages of the array may go? Then the kernel's balancing moves none of them.
static int is_taken(void) {
    int mode = MPOL_DEFAULT;
    syscall(SYS_get_mempolicy, &mode, NULL, 0, array, MPOL_F_ADDR);
    return mode != MPOL_DEFAULT;
}

static int at_home(void) {
    int count = 0;
    homing_where(array, (size_t)PAGES * PAGE, nodes, PAGES);
    for (int i = 0; i < PAGES; ++i)
        count += nodes[i] == i / PART;
    return count;
}

int main(void) {
    if (!run_on(0) || posix_memalign((void**)&array, PAGE, (size_t)PAGES * PAGE)) return 1;
    memset(array, 0, (size_t)PAGES * PAGE);
    upmlib_memrefcnt(array, (size_t)PAGES * PAGE);
    for (int tenths = 0; tenths < 600 && !is_taken(); ++tenths)
        usleep(100000);
    const int taken = is_taken();
    pthread_t threads[NODES];
    for (long i = 0; i < NODES; ++i)
        if (pthread_create(&threads[i], NULL, sweep, (void*)i)) return 1;
    int home = 0;
    for (int tenths = 0; tenths < 600 && home < PAGES / 2; ++tenths) {
        usleep(100000);
        home = at_home();
    }
    stop = 1;
    int right = 1;
    for (long i = 0; i < NODES; ++i) {
        pthread_join(threads[i], NULL);
        for (long at = i * PART * PAGE; at < (i + 1) * PART * PAGE; at += 64)
            right &= array[at] == (char)sweeps[i];
    }
    printf("{\"taken\": %d, \"home\": %d, \"right\": %d}\n", taken, home, right);
    free(array);
    return 0;
}
