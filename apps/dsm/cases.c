// Small programs on the shared memory whose counts can be worked out by hand, and one that nobody can
// foretell but whose results are known: what the tests run. --case NAME.
#include "app.h"
#include "diff.h"
#include "program.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = DSM_PAGE_BYTES / (int)sizeof(uint32_t) };

static void expect(bool holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "process %d: ", dsm_me());
    app_error(what);
}

// Diffs alone: nothing, everything, every second word, both ends; words that are not in it stay.
static void case_diff(void) {
    if (dsm_me() != 0) return;
    static uint32_t page[WORDS], twin[WORDS], other[WORDS];
    static char made[DIFF_MOST_BYTES];
    expect(diff_make(page, twin, made) == 0, "equal pages have a diff");
    page[0] = page[WORDS - 1] = 7;
    size_t bytes = diff_make(page, twin, made);
    expect(bytes == 2 * (WIRE_RUN + WIRE_WORD), "two words are not two runs");
    other[5] = 9;
    diff_apply(made, bytes, other);
    expect(other[0] == 7 && other[WORDS - 1] == 7 && other[5] == 9, "the diff of both ends went wrong");
    for (int word = 0; word < WORDS; word++)
        page[word] = word % 2 == 0 ? 1 : 0;
    bytes = diff_make(page, twin, made);
    expect(bytes == (size_t)WORDS / 2 * (WIRE_RUN + WIRE_WORD), "every second word is not a run each");
    memset(page, 1, sizeof page);
    bytes = diff_make(page, twin, made);
    expect(bytes == DIFF_MOST_BYTES, "a whole page is not one run");
    diff_apply(made, bytes, other);
    expect(memcmp(other, page, sizeof page) == 0, "the diff of a whole page went wrong");
}

// A page with a copy each, so that nothing is fetched whole in what follows.
static uint32_t* page_of_all(void) {
    uint32_t* page = dsm_allocate(DSM_PAGE_BYTES);
    expect(page[0] == 0, "memory is not zero at first");
    dsm_measure_begin();
    return page;
}

// Two processes write to two halves of one page, and then read each other's.
static void case_false_sharing(void) {
    uint32_t* page = page_of_all();
    const int me = dsm_me();
    page[me * 512] = (uint32_t)me + 1;
    dsm_barrier();
    expect(page[(1 - me) * 512] == (uint32_t)(1 - me) + 1 && page[me * 512] == (uint32_t)me + 1,
           "of two writers one is lost");
    dsm_measure_end();
}

// One writes in each interval, nobody reads: one twin and notice for all of them; at the end one diff.
static void case_unread(void) {
    uint32_t* page = page_of_all();
    for (uint32_t interval = 0; interval < 10; interval++) {
        if (dsm_me() == 0) page[interval] = interval + 1;
        dsm_barrier();
    }
    dsm_measure_end();
    for (uint32_t interval = 0; interval < 10; interval++)
        expect(page[interval] == interval + 1, "a write after the notice is lost");
}

// One writes and all others read, over and over.
static void case_producer(void) {
    uint32_t* page = page_of_all();
    for (uint32_t interval = 1; interval <= 10; interval++) {
        if (dsm_me() == 0) page[0] = interval;
        dsm_barrier();
        expect(page[0] == interval, "a reader sees an old value");
        dsm_barrier();
    }
    dsm_measure_end();
}

// A process without a copy gets one while the page's manager is writing: it must hear of the rest.
static void case_late_copy(void) {
    uint32_t* page = dsm_allocate(DSM_PAGE_BYTES);
    const int me = dsm_me();
    if (me == 1) expect(page[0] == 0, "memory is not zero at first");
    dsm_measure_begin();
    if (me == 0) page[0] = 1; // a twin, because process 1 has a copy
    if (me == 2) expect(page[9] == 0, "memory is not zero at first");
    dsm_barrier();
    if (me == 0) page[1] = 2; // no fault: the twin is there
    if (me == 2) expect(page[0] == 1, "what was written before the copy was made is lost");
    dsm_barrier();
    if (me == 0) page[2] = 3;
    if (me == 2) expect(page[1] == 2, "what was written after the notice is lost");
    dsm_barrier();
    expect(page[0] == 1 && page[1] == 2 && page[2] == 3, "writes are lost");
    dsm_measure_end();
}

// All add to one number under a lock, then read it.
static void case_counter(void) {
    uint32_t* page = dsm_allocate(DSM_PAGE_BYTES);
    dsm_measure_begin();
    dsm_acquire(0);
    uint32_t before = *(volatile uint32_t*)page;
    page[0] = before + 1;
    dsm_release(0);
    dsm_barrier();
    expect(page[0] == (uint32_t)dsm_processes(), "an increment is lost");
    dsm_measure_end();
}

// Without races, but otherwise at random: in each interval each word has one writer, or none; a counter under
// each of several locks, on one page with the others; all is checked by everybody who looks.
static uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t value = a * 0x9E3779B97F4A7C15U + b * 0xC2B2AE3D27D4EB4FU + c * 0x165667B19E3779F9U;
    value ^= value >> 29;
    value *= 0xBF58476D1CE4E5B9U;
    return value ^ value >> 32;
}

enum { RANDOM_PAGES = 5, RANDOM_INTERVALS = 60, RANDOM_LOCKS = 4, EVERY = 37 };

static void case_random(void) {
    uint32_t* words = dsm_allocate((size_t)RANDOM_PAGES * DSM_PAGE_BYTES);
    uint32_t* counters = dsm_allocate(DSM_PAGE_BYTES);
    static uint32_t expected[RANDOM_PAGES * WORDS];
    const uint64_t me = (uint64_t)dsm_me(), processes = (uint64_t)dsm_processes();
    dsm_measure_begin();
    for (uint64_t interval = 1; interval <= RANDOM_INTERVALS; interval++) {
        for (uint64_t word = 0; word < (uint64_t)RANDOM_PAGES * WORDS; word += EVERY) {
            uint64_t chance = mix(1, word, interval);
            if (chance % 3 == 0 && mix(2, word, interval) % processes == me)
                words[word] = (uint32_t)chance | 1;
        }
        uint64_t lock = mix(3, me, interval) % RANDOM_LOCKS;
        dsm_acquire((int)lock);
        counters[lock * 5]++;
        dsm_release((int)lock);
        dsm_barrier();
        for (uint64_t word = 0; word < (uint64_t)RANDOM_PAGES * WORDS; word += EVERY) {
            uint64_t chance = mix(1, word, interval);
            if (chance % 3 == 0) expected[word] = (uint32_t)chance | 1;
            if (interval == RANDOM_INTERVALS || mix(4 + me, word / WORDS, interval) % 4 == 0)
                expect(words[word] == expected[word], "a word at random is wrong");
        }
        dsm_barrier();
    }
    uint64_t total = 0;
    for (int lock = 0; lock < RANDOM_LOCKS; lock++)
        total += counters[lock * 5];
    expect(total == RANDOM_INTERVALS * processes, "increments under locks are lost");
    dsm_measure_end();
}

// A process ends before its time: the others must not wait for ever.
static void case_failure(void) {
    dsm_measure_begin();
    expect(dsm_me() != 1, "as it was told to");
    dsm_barrier();
    dsm_measure_end();
}

int main(int argc, char** argv) {
    static void (*const cases[])(void) = {case_diff,      case_false_sharing, case_unread, case_producer,
                                          case_late_copy, case_counter,       case_random, case_failure};
    app_begin("dsm_cases", argc, argv);
    const int chosen =
        app_choice_option("--case", 0, "diff|false-sharing|unread|producer|late-copy|counter|random|failure",
                          "which one, default diff");
    const struct program program = program_options();
    app_options_end();
    dsm_start(&program.dsm, 16L * DSM_PAGE_BYTES);
    cases[chosen]();
    dsm_barrier();
    dsm_finish(true);
    return 0;
}
