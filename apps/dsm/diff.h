// What changed in a page since its twin was made: runs of words, each with its place.
#ifndef HOMING_APPS_DSM_DIFF_H
#define HOMING_APPS_DSM_DIFF_H

#include "dsm.h"
#include "wire.h"

#include <stddef.h>

// The most that diff_make writes: each run but the first one spares a word.
enum { DIFF_MOST_BYTES = DSM_PAGE_BYTES + WIRE_RUN };
// Writes the diff to `to` and returns its size; 0: the pages are equal.
size_t diff_make(const void* page, const void* twin, void* to);
// Changes the words of `page` that are in the diff, no others.
void diff_apply(const void* diff, size_t bytes, void* page);

#endif
