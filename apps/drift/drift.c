// A program whose owners drift: every thread works on its own block of two arrays, and each iteration all
// blocks move on by a few pages, as with particles that drift through the cells of a grid or a load balancer
// that shifts its borders. The arrays are rings: what leaves at the end comes in at the beginning.
//
// Each element goes through the recurrence s -> MULTIPLIER * s + INCREMENT modulo 2^64, starting from its own
// index, so after m iterations element e must hold e * M^m + INCREMENT * (1 + M + ... + M^(m-1)), whoever
// computed it. Every element is checked against that. Integers, because the emulated guest is slow in
// floating point.
#include "app.h"

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Any odd numbers do; a multiplier of 1 more than a multiple of 4 makes the recurrence one long cycle (Hull
// and Dobell, 1962).
#define MULTIPLIER 6364136223846793005u
#define INCREMENT 1442695040888963407u

enum { PAGE_BYTES = 4096, PAGE_WORDS = PAGE_BYTES / sizeof(uint64_t), DEFAULT_NODES = 4 };

static const long DEFAULT_BYTES = 64L << 20;
static const long DEFAULT_ITERATIONS = 40;

static long pages;             // of each array
static uint64_t *state, *next; // aligned to pages

// The page that is the `place`-th of the ring after it has been shifted. Threads get equal runs of places, so
// their blocks move on as the shift grows.
static inline size_t first_word(long place, long shift) {
    long page = place + shift;
    return (size_t)(page < pages ? page : page - pages) * PAGE_WORDS;
}

// First touch of both arrays, dealt out as in the first iteration. The loop binds to the region around it:
// called outside of one, the master thread runs all of it.
static void fill(void) {
#pragma omp for schedule(static)
    for (long place = 0; place < pages; place++) {
        size_t first = first_word(place, 0);
        for (size_t e = first; e < first + PAGE_WORDS; e++) {
            state[e] = e;
            next[e] = 0;
        }
    }
}

static void predict(long shift) {
#pragma omp parallel for schedule(static)
    for (long place = 0; place < pages; place++) {
        size_t first = first_word(place, shift);
        for (size_t e = first; e < first + PAGE_WORDS; e++)
            next[e] = MULTIPLIER * state[e];
    }
}

static void correct(long shift) {
#pragma omp parallel for schedule(static)
    for (long place = 0; place < pages; place++) {
        size_t first = first_word(place, shift);
        for (size_t e = first; e < first + PAGE_WORDS; e++)
            state[e] = next[e] + INCREMENT;
    }
}

static uint64_t sum(long shift) {
    uint64_t total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (long place = 0; place < pages; place++) {
        size_t first = first_word(place, shift);
        for (size_t e = first; e < first + PAGE_WORDS; e++)
            total += state[e];
    }
    return total;
}

static long wrong_elements(long iterations) {
    uint64_t factor = 1, summand = 0;
    for (long m = 0; m < iterations; m++) {
        factor *= MULTIPLIER;
        summand = MULTIPLIER * summand + INCREMENT;
    }
    long wrong = 0;
#pragma omp parallel for schedule(static) reduction(+ : wrong)
    for (long place = 0; place < pages; place++) {
        size_t first = first_word(place, 0);
        for (size_t e = first; e < first + PAGE_WORDS; e++)
            wrong += state[e] != factor * e + summand;
    }
    return wrong;
}

int main(int argc, char** argv) {
    app_begin("drift", argc, argv);
    long bytes = app_bytes_option("--bytes", DEFAULT_BYTES, 2 * PAGE_BYTES, 1L << 46,
                                  "of both arrays together, rounded down to whole pages; default 64M");
    long iterations = app_integer_option("--iterations", DEFAULT_ITERATIONS, 1, 1000000, "default 40");
    long drift =
        app_integer_option("--drift-pages-per-iteration", -1, 0, 1L << 40,
                           "default: so many that all iterations together go round a quarter of the ring");
    int initialisation = app_initialise_option();
    app_options_end();

    pages = bytes / (2 * PAGE_BYTES);
    if (drift < 0) {
        long quarter = pages / DEFAULT_NODES;
        drift = (quarter + iterations / 2) / iterations;
        if (drift == 0) drift = 1;
    }
    size_t array_bytes = (size_t)pages * PAGE_BYTES;
    state = aligned_alloc(PAGE_BYTES, array_bytes);
    next = aligned_alloc(PAGE_BYTES, array_bytes);
    if (state == NULL || next == NULL) app_error("not enough memory for the arrays");
    if (initialisation == APP_PARALLEL) {
#pragma omp parallel
        fill();
    } else {
        fill();
    }
    char size[96];
    snprintf(size, sizeof size, "2 arrays of %ld pages, drifting by %ld pages an iteration", pages, drift);
    app_describe(size, (long)(2 * array_bytes), initialisation, omp_get_max_threads());

    app_iterations_begin(iterations);
    uint64_t total = 0;
    long shift = 0;
    for (long m = 0; m < iterations; m++) {
        app_iteration_begin();
        predict(shift);
        correct(shift);
        total = sum(shift);
        shift = (shift + drift % pages) % pages;
        app_iteration_end(NULL, 0);
    }
    app_iterations_end();

    long wrong = wrong_elements(iterations);
    app_result_integer("sum", (long)total);
    app_result_integer("wrong elements", wrong);
    app_finish(wrong == 0 ? APP_SUCCESSFUL : APP_FAILED);
    free(state);
    free(next);
    return 0;
}
