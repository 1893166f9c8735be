// Figure 2 of Nikolopoulos et al. 2000: a step of three sweeps by blocks of pages, and one from the other
// end, which is recorded, replayed and undone. Prints, by step, how many pages lie elsewhere than before the
// first one, within the phase and behind the step; and the array's sum. Where pages are is the kernel's word.
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGES = 512, PAGE = 4096, STEPS = 6 };

// homing's, where it is loaded.
extern void upmlib_init(void) __attribute__((weak));
extern void upmlib_memrefcnt(const void* start, size_t bytes) __attribute__((weak));
extern void upmlib_record(void) __attribute__((weak));
extern void upmlib_replay(void) __attribute__((weak));
extern void upmlib_undo(void) __attribute__((weak));

static double* array;
static const long count = (long)PAGES * PAGE / (long)sizeof(double);
static int before[PAGES], now[PAGES];

static void look(int* nodes) {
    void* pages[PAGES];
    for (int i = 0; i < PAGES; ++i)
        pages[i] = (char*)array + (size_t)i * PAGE;
    syscall(SYS_move_pages, 0, (unsigned long)PAGES, pages, NULL, nodes, 0);
}

static int moved(void) {
    int different = 0;
    look(now);
    for (int i = 0; i < PAGES; ++i)
        different += now[i] != before[i];
    return different;
}

static void forwards(void) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i)
        array[i] += 1;
}

static void backwards(void) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i)
        array[count - 1 - i] += 2;
}

int main(void) {
    int in_phase[STEPS], behind[STEPS];
    array = aligned_alloc(PAGE, (size_t)PAGES * PAGE);
    forwards();
    if (upmlib_init) {
        upmlib_init();
        upmlib_memrefcnt(array, (size_t)PAGES * PAGE);
    }
    look(before);
    for (int step = 0; step < STEPS; ++step) {
        forwards();
        forwards();
        if (upmlib_record) step == 0 ? upmlib_record() : upmlib_replay();
        in_phase[step] = moved();
        backwards();
        if (upmlib_record) step == 0 ? upmlib_record() : upmlib_undo();
        behind[step] = moved();
    }
    double sum = 0;
    for (long i = 0; i < count; ++i)
        sum += array[i];
    printf("{\"in_phase\": [");
    for (int step = 0; step < STEPS; ++step)
        printf("%s%d", step ? ", " : "", in_phase[step]);
    printf("], \"behind\": [");
    for (int step = 0; step < STEPS; ++step)
        printf("%s%d", step ? ", " : "", behind[step]);
    printf("], \"sum\": %.1f}\n", sum);
    return 0;
}
