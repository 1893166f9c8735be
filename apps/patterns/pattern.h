// What the programs of this folder share. Each is one pattern of use, by which threads use which part of its
// arrays is known: the comment at its head says so, in the words of the directives (docs/directives.md).
//
// Words are integers, because the emulated guest is slow in floating point, and sums are taken modulo 2^64,
// so that a checksum has the same digits for any number of threads and in any order.
#ifndef HOMING_APPS_PATTERN_H
#define HOMING_APPS_PATTERN_H

#include "app.h"

#include <omp.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t word;

struct pattern {
    const char* name;
    void (*options)(void); // asks for options of its own; may be NULL
    // Makes the arrays, of some `bytes` together; returns how many bytes they have.
    long (*allocate)(long bytes);
    // Touches the arrays first. Its loops bind to the region around it, where every thread is to touch what
    // it will use; called outside of one, the master thread runs all of them.
    void (*fill)(void);
    void (*iterate)(long number); // from 1; called outside of parallel regions
    word (*checksum)(void);
};

// Runs it, with the options --size, --iterations and --initialise; the exit status.
int pattern_run(const struct pattern* pattern, int argc, char** argv);

// The option --initialise, an app_initialisation.
extern int pattern_initialisation;

// An array of so many words, from malloc; ends the program where there is no memory.
word* pattern_array(long words);

// A sum that tells where in the array a value stands; `sum` is that of what came before.
word pattern_sum(word sum, const word* array, long words);

// Any odd factor does; 1 more than a multiple of 4 makes it one long cycle (Hull and Dobell, 1962).
static inline word pattern_next(word state) { return 6364136223846793005u * state + 1442695040888963407u; }

#endif
