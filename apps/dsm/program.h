// What the programs on the shared memory have in common: options, and the verdict against the serial run.
#ifndef HOMING_APPS_DSM_PROGRAM_H
#define HOMING_APPS_DSM_PROGRAM_H

#include "dsm.h"

#include <stdbool.h>
#include <stddef.h>

// shared: everything in shared memory, loops in blocks. private: SPMD style, only buffers are shared.
enum version { VERSION_SHARED, VERSION_PRIVATE };

struct program {
    enum version version;
    struct dsm_options dsm;
};

// Between app_begin and app_options_end.
struct program program_options(void);

// The caller's block of 0..count-1; begin == end: nothing.
struct block {
    long begin, end;
};
struct block block_of(long count, int process, int processes);

// Zeroed memory of the process's own; ends the program where there is none.
void* program_memory(size_t bytes);
// Process 0, at the end: are the results the same, bit by bit?
bool same_bits(const void* left, const void* right, size_t bytes);

#endif
