// Arrays that are allocated and freed again in every iteration. With serial initialisation the master thread
// clears them first, as the constructor of a std::vector does; else they are touched where they are computed.
//
// Truth: state, rate and all temporaries: DISTRIBUTE(BLOCK) over all threads, but for the clearing (SINGLE,
// the master thread).
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 6 }; // in lengths of `state`: two that stay, two temporaries of one and one of two

static long n; // words of `state`
static word *state, *rate;

static long allocate(long bytes) {
    n = bytes / (ARRAYS * (long)sizeof(word));
    state = pattern_array(n);
    rate = pattern_array(n);
    return ARRAYS * n * (long)sizeof(word);
}

static void fill(void) {
#pragma omp for schedule(static)
    for (long i = 0; i < n; i++) {
        state[i] = (word)i;
        rate[i] = 1;
    }
}

static word* temporary(long words) {
    word* array = pattern_array(words);
    if (pattern_initialisation == APP_SERIAL) memset(array, 0, (size_t)words * sizeof *array);
    return array;
}

static void iterate(long number) {
    word *force = temporary(n), *flux = temporary(n);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        force[i] = pattern_next(state[i] + (word)number);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
        flux[i] = force[i] + force[i > 0 ? i - 1 : 0];
    free(force);
    word* pair = temporary(2 * n);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) {
        pair[2 * i] = flux[i];
        pair[2 * i + 1] = flux[i] ^ rate[i];
    }
    free(flux);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++) {
        state[i] += pair[2 * i];
        rate[i] += pair[2 * i + 1];
    }
    free(pair);
}

static word checksum(void) { return pattern_sum(pattern_sum(0, state, n), rate, n); }

int main(int argc, char** argv) {
    static const struct pattern temporaries = {
        "pattern_temporaries", NULL, allocate, fill, iterate, checksum};
    return pattern_run(&temporaries, argc, argv);
}
