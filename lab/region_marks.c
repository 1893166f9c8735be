/* Marks phases for the counter in a program that does not mark them itself, by the number of parallel regions
 * that its first thread has entered (programs built by GCC: what they call in libgomp is counted, and passed
 * on).
 *
 * To be preloaded, behind homing's library where that is, too. Environment:
 *   HOMING_MARK_ITERATIONS   so many regions are before the first iteration; phase 2 begins after them
 *   HOMING_MARK_LAST_HALF    the same for the last half of the iterations, phase 3; none: no phase is marked
 *   HOMING_MARK_REGIONS      a file: the number of regions is written there when the process ends */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "marks.h"

#define EXPORT __attribute__((visibility("default")))
enum { PAGE = 4096, FIRST_HALF = 2, LAST_HALF = 3, NONE = -1 };

static long regions;
static long begins[LAST_HALF + 1] = {NONE, NONE, NONE, NONE};
static volatile long* marks;

static long number(const char* name) {
    const char* text = getenv(name);
    return text != NULL ? strtol(text, NULL, 10) : NONE;
}

__attribute__((constructor)) static void prepare(void) {
    begins[FIRST_HALF] = number("HOMING_MARK_ITERATIONS");
    begins[LAST_HALF] = number("HOMING_MARK_LAST_HALF");
    if (begins[LAST_HALF] == NONE) return;
    void* page = mmap((void*)HOMING_MARK_PAGE, PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == (void*)HOMING_MARK_PAGE) marks = page;
}

__attribute__((destructor)) static void tell(void) {
    const char* path = getenv("HOMING_MARK_REGIONS");
    FILE* file = path != NULL && regions > 0 ? fopen(path, "w") : NULL;
    if (file == NULL) return;
    fprintf(file, "%ld\n", regions);
    fclose(file);
}

static void count_region(void) {
    if (gettid() != getpid()) return;
    for (int phase = FIRST_HALF; marks != NULL && phase <= LAST_HALF; phase++)
        if (regions == begins[phase]) marks[phase] = 1;
    regions++;
}

static void* next(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        fprintf(stderr, "homing: the program calls %s, and no library has it\n", name);
        abort();
    }
    return found;
}

#define REGION(name, parameters, arguments)                                                                  \
    EXPORT void name parameters;                                                                             \
    EXPORT void name parameters {                                                                            \
        static void(*real) parameters;                                                                       \
        if (real == NULL) *(void**)&real = next(#name);                                                      \
        count_region();                                                                                      \
        real arguments;                                                                                      \
    }
#define LOOP(name)                                                                                           \
    REGION(name,                                                                                             \
           (void (*function)(void*), void* data, unsigned threads, long start, long end, long step,          \
            long chunk, unsigned flags),                                                                     \
           (function, data, threads, start, end, step, chunk, flags))
#define LOOP_RUNTIME(name)                                                                                   \
    REGION(name,                                                                                             \
           (void (*function)(void*), void* data, unsigned threads, long start, long end, long step,          \
            unsigned flags),                                                                                 \
           (function, data, threads, start, end, step, flags))

REGION(GOMP_parallel, (void (*function)(void*), void* data, unsigned threads, unsigned flags),
       (function, data, threads, flags))
REGION(GOMP_parallel_sections,
       (void (*function)(void*), void* data, unsigned threads, unsigned count, unsigned flags),
       (function, data, threads, count, flags))
LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)
LOOP_RUNTIME(GOMP_parallel_loop_runtime)
LOOP_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* It returns a value, so it stands by itself. */
EXPORT unsigned GOMP_parallel_reductions(void (*function)(void*), void* data, unsigned threads,
                                         unsigned flags);
EXPORT unsigned GOMP_parallel_reductions(void (*function)(void*), void* data, unsigned threads,
                                         unsigned flags) {
    static unsigned (*real)(void (*)(void*), void*, unsigned, unsigned);
    if (real == NULL) *(void**)&real = next("GOMP_parallel_reductions");
    count_region();
    return real(function, data, threads, flags);
}
