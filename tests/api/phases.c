// Record, replay and undo by C's names, in every order that a program may get wrong. Printed: what each step
// of a right use moved, then "passed".
#include <homing/homing.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES = 512, PAGE = 4096, BYTES = PAGES * PAGE };

void upmlib_memrefcnt_(const void* start, const int* bytes); // as Fortran calls it

static double* array;
static const long count = BYTES / (long)sizeof(double);
static int before[PAGES], now[PAGES];

static int moved(void) {
    int different = 0;
    homing_where(array, BYTES, now, PAGES);
    for (int i = 0; i < PAGES; ++i)
        different += now[i] != before[i];
    return different;
}

static void expect(int holds, const char* what) {
    if (!holds) printf("failed: %s\n", what);
}

static void forwards(void) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i)
        array[i] += 1;
}
static void backwards(void) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; ++i)
        array[count - 1 - i] += 1;
}

int main(int argc, char** argv) {
    const int misuse = argc > 1 && strcmp(argv[1], "misuse") == 0;
    const int places = argc > 1 && strcmp(argv[1], "place") == 0;
    array = aligned_alloc(PAGE, BYTES);
    if (misuse) // the calls come before the first region, and before there is a record
        memset(array, 0, BYTES);
    else
        forwards();
    if (homing_where(array, BYTES, before, PAGES) != PAGES) return 1;
    if (misuse) {
        upmlib_memrefcnt(NULL, BYTES);
        upmlib_memrefcnt(array, 0);
        upmlib_memrefcnt(array, (size_t)1 << 46);
        upmlib_memrefcnt(array, (size_t)-8);
        int size = -16;
        upmlib_memrefcnt_(array, &size);
        upmlib_replay();
        upmlib_undo();
#pragma omp parallel
        {
            upmlib_record();
            if (omp_get_thread_num() != 0) { // the first one drives the region: its call ends an iteration
                upmlib_migrate_memory();
                upmlib_memrefcnt(array, BYTES);
            }
        }
        expect(homing_replay() == HOMING_INVALID, "nothing was recorded");
        expect(homing_record() == HOMING_OK, "record");
        expect(homing_replay() == HOMING_INVALID, "one record is no phase");
        forwards();
        expect(moved() == 0, "nothing moved");
        puts("passed");
        return 0;
    }
    upmlib_memrefcnt(array, BYTES);
    homing_replay_pages(8);
    for (int step = 1; step <= 4; ++step) {
        forwards();
        expect((step == 1 ? homing_record() : homing_replay()) == HOMING_OK, "begin of the phase");
        const int in_phase = moved();
        backwards();
        expect((step == 1 ? homing_record() : homing_undo()) == HOMING_OK, "end of the phase");
        printf("%d %d\n", in_phase, moved());
    }
    if (places) { // the program's last word, where replay has sent some of these pages
        homing_replay();
        moved();
        int first = 0;
        while (now[first] == before[first])
            ++first;
        const int node = now[first];
        expect(homing_place_on_node(array, BYTES, node) == HOMING_OK, "place");
        homing_undo();
        homing_where(array, BYTES, now, PAGES);
        int there = 0;
        for (int i = 0; i < PAGES; ++i)
            there += now[i] == node;
        printf("%d there\n", there);
    }
    puts("passed");
    return 0;
}
