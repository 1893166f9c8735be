#define _GNU_SOURCE
#include "dsm.h"

#include "app.h"
#include "memory.h"
#include "notices.h"
#include "pages.h"
#include "synchronisation.h"
#include "turns.h"
#include "virtual_time.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int me;
static int processes;
static size_t allocated;

// A process that ends before its time leaves the others waiting for its turn.
static void on_child_end(int signal) {
    (void)signal;
    int status = 0;
    while (waitpid(-1, &status, WNOHANG) > 0)
        if (status != 0) _exit(1);
}

void dsm_start(const struct dsm_options* options, size_t bytes) {
    processes = options->processes;
    virtual_time_read(options->costs);
    const long pages = (long)((bytes + DSM_PAGE_BYTES - 1) / DSM_PAGE_BYTES);
    memory_make(processes, pages);
    turns_make(processes);
    notices_make(processes, pages);
    pages_make(processes, pages, options->diffs == DSM_EAGER);
    synchronisation_make(processes);
    struct sigaction action = {.sa_handler = on_child_end};
    sigemptyset(&action.sa_mask);
    sigaction(SIGCHLD, &action, NULL);
    fflush(stdout);
    for (int child = 1; child < processes; child++) {
        pid_t pid = fork();
        if (pid < 0) app_error("fork failed");
        if (pid > 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        me = child;
        break;
    }
    pages_join(me);
    if (me != 0) {
        turns_join(me);
        pages_resume(me);
    }
}

int dsm_me(void) { return me; }

int dsm_processes(void) { return processes; }

void* dsm_allocate(size_t bytes) {
    void* found = memory_base() + allocated;
    allocated += (bytes + DSM_PAGE_BYTES - 1) / DSM_PAGE_BYTES * DSM_PAGE_BYTES;
    if (allocated > (size_t)memory_pages() * DSM_PAGE_BYTES) app_error("the shared memory is used up");
    return found;
}

void dsm_barrier(void) { synchronise(me, BARRIER_ORDINARY); }

void dsm_acquire(int lock) { lock_acquire(me, lock); }

void dsm_release(int lock) { lock_release(me, lock); }

void dsm_measure_begin(void) {
    synchronise(me, BARRIER_ORDINARY); // what was written before is heard of before
    synchronise(me, BARRIER_BEGINS_MEASURE);
}

void dsm_measure_end(void) { synchronise(me, BARRIER_ENDS_MEASURE); }

void dsm_work(double units) { virtual_add(&pages_process(me)->time, COST_WORK, units); }

static void print_measured(void) {
    const struct measured* found = synchronisation_measured();
    printf("processes: %d\n", processes);
    dsm_counts_print(found->counts, processes);
    for (int clock = 0; clock < VIRTUAL_CLOCKS; clock++) {
        double last = 0;
        for (int process = 0; process < processes; process++)
            if (found->time[process].of[clock] > last) last = found->time[process].of[clock];
        printf("predicted %d: %.3f us\n", clock, last);
    }
}

void dsm_end(bool print) {
    if (me != 0) {
        turns_leave(me);
        return;
    }
    while (turns_others(me))
        turns_pass(me);
    if (print) print_measured();
}

void dsm_finish(bool same_as_serial) {
    dsm_end(true);
    if (me != 0) exit(0);
    app_finish(same_as_serial ? APP_SUCCESSFUL : APP_FAILED);
}
