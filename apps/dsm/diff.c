#include "diff.h"

#include "dsm.h"
#include "wire.h"

#include <stdint.h>
#include <string.h>

enum { WORDS = DSM_PAGE_BYTES / WIRE_WORD };

struct run {
    uint16_t begin, words;
};
_Static_assert(sizeof(struct run) == WIRE_RUN, "what is counted is what is made");

size_t diff_make(const void* page, const void* twin, void* to) {
    const uint32_t *now = page, *before = twin;
    char* at = to;
    for (int word = 0; word < WORDS;) {
        if (now[word] == before[word]) {
            word++;
            continue;
        }
        int end = word + 1;
        while (end < WORDS && now[end] != before[end])
            end++;
        struct run run = {(uint16_t)word, (uint16_t)(end - word)};
        size_t bytes = (size_t)run.words * WIRE_WORD;
        memcpy(at, &run, sizeof run);
        memcpy(at + sizeof run, now + word, bytes);
        at += sizeof run + bytes;
        word = end;
    }
    return (size_t)(at - (char*)to);
}

void diff_apply(const void* diff, size_t bytes, void* page) {
    const char *at = diff, *end = at + bytes;
    while (at < end) {
        struct run run;
        memcpy(&run, at, sizeof run);
        size_t length = (size_t)run.words * WIRE_WORD;
        memcpy((uint32_t*)page + run.begin, at + sizeof run, length);
        at += sizeof run + length;
    }
}
