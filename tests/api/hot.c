// Memory that is registered as hot at any time, again, in parts and under other names. Arguments: a scenario,
// and the iteration in which it changes its mind. Printed: a line for each array, 1 where the second thread's
// half of it has gone to that thread's node. On a busy machine a few milliseconds may show nothing: the steps
// go on until all memory that is hot has gone there.
#include <homing/homing.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES = 2048, PAGE = 4096, BYTES = PAGES * PAGE, STEPS = 40, MOST_STEPS = 20000 };

static char in_program[BYTES];

static char* map(void) {
    return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/// Each thread uses its half; `turned`: the other's.
static void use(char* memory, int turned) {
#pragma omp parallel num_threads(2)
    {
        const int half = omp_get_thread_num() ^ turned;
        for (int page = half * PAGES / 2; page < (half + 1) * PAGES / 2; ++page)
            memory[page * PAGE] += 1;
    }
}

static int has_gone(const char* memory) {
    static int nodes[PAGES];
    const long pages = homing_where(memory, BYTES, nodes, PAGES);
    int moved = 0;
    for (long i = 0; i < pages; ++i)
        moved += nodes[i] != nodes[1];
    return moved > PAGES / 2 * 9 / 10;
}

int main(int argc, char** argv) {
    const char* scenario = argc > 1 ? argv[1] : "later";
    const int when = argc > 2 ? atoi(argv[2]) : 0;
    const int later = !strcmp(scenario, "later"), phases = !strcmp(scenario, "phases");
    char* first = phases ? map() : malloc(BYTES);
    char* second = malloc(BYTES);
    memset(first, 1, BYTES);
    memset(second, 1, BYTES);
    memset(in_program, 1, BYTES);
    homing_watch_hot(first, BYTES, "first");
    if (!strcmp(scenario, "renamed")) {
        homing_watch_hot(second, BYTES, "second");
        homing_watch(first, BYTES, "velocity");
    }
    const int all = when < STEPS && (later || !strcmp(scenario, "given up"));
    const int second_is_hot = all || !strcmp(scenario, "renamed");
    for (int step = 0; step < MOST_STEPS; ++step) {
        if (step >= STEPS && (phases || (has_gone(first) && (!second_is_hot || has_gone(second)) &&
                                         (!all || has_gone(in_program)))))
            break;
        if (later && step == when) {
            homing_watch_hot(second, BYTES, "second");
            homing_watch_hot(in_program, BYTES, "in_program");
        }
        if (!strcmp(scenario, "given up") && step == when) homing_unwatch(first);
        if (phases) homing_watch_hot(first, BYTES, "first"); // as a subroutine does with its argument
        use(first, 0);
        use(second, 0);
        use(in_program, 0);
        if (!phases) {
            homing_iteration();
            continue;
        }
        step == 0 ? homing_record() : homing_replay();
        use(first, 1);
        step == 0 ? homing_record() : homing_undo();
    }
    printf("first %d\nsecond %d\nin_program %d\n", has_gone(first), has_gone(second), has_gone(in_program));
    return 0;
}
