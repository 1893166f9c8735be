#include "synchronisation.h"

#include "app.h"
#include "memory.h"
#include "pages.h"
#include "turns.h"
#include "wire.h"

enum { BARRIER_MANAGER = 0 };

struct lock {
    int holder; // the last one to have it
    bool held;
    struct virtual_time released;
};

struct synchronisation {
    int processes, arrived;
    long barriers;               // that are complete
    struct vector_clock barrier; // what all knew when the last one was complete
    struct lock locks[DSM_LOCKS];
    struct measured measured;
};

static struct synchronisation* all;

static int manager_of(int lock) { return lock % all->processes; }

void synchronisation_make(int processes) {
    all = arena_take(sizeof *all);
    all->processes = processes;
    for (int lock = 0; lock < DSM_LOCKS; lock++)
        all->locks[lock].holder = manager_of(lock);
}

static void keep_measured(void) {
    for (int process = 0; process < all->processes; process++) {
        all->measured.counts[process] = pages_process(process)->counts;
        all->measured.time[process] = pages_process(process)->time;
    }
}

static void forget_measured(void) {
    for (int process = 0; process < all->processes; process++) {
        pages_process(process)->counts = (struct dsm_counts){0};
        pages_process(process)->time = (struct virtual_time){0};
    }
}

// Each client tells the manager of its own intervals since the last barrier; the manager tells each client of
// all that it has not heard of. A message each way. The manager handles one client after the other.
static void complete_barrier(void) {
    struct vector_clock now = {0};
    struct virtual_time last = {0};
    for (int process = 0; process < all->processes; process++) {
        now.of[process] = pages_process(process)->clock.of[process];
        virtual_wait(&last, &pages_process(process)->time);
    }
    for (int client = 0; client < all->processes; client++) {
        pages_count(client, DSM_BARRIERS, 1);
        if (client == BARRIER_MANAGER) continue;
        const struct vector_clock* known = &pages_process(client)->clock;
        const long arrival =
            wire_synchronisation(all->processes) + intervals_bytes(client, &all->barrier, &now);
        const long departure = wire_synchronisation(all->processes) + intervals_bytes(-1, known, &now);
        pages_message(client, arrival);
        pages_message(BARRIER_MANAGER, departure);
        virtual_add(&last, COST_CLIENT, 1);
        virtual_add(&last, COST_BYTE, (double)(arrival + departure));
    }
    if (all->processes > 1) virtual_add(&last, COST_ROUNDTRIP, 1);
    for (int process = 0; process < all->processes; process++)
        pages_process(process)->time = last;
    all->barrier = now;
}

void synchronise(int me, enum barrier_kind kind) {
    pages_end_interval(me);
    const long mine = all->barriers;
    if (++all->arrived == all->processes) {
        if (kind == BARRIER_ENDS_MEASURE) keep_measured();
        complete_barrier();
        if (kind == BARRIER_BEGINS_MEASURE) forget_measured();
        all->arrived = 0;
        all->barriers++;
        turns_wake_all();
        turns_pass(me);
    }
    while (all->barriers == mine)
        turns_sleep(me);
    pages_resume(me);
    pages_hear_of(me, &all->barrier);
}

void lock_acquire(int me, int number) {
    struct lock* lock = &all->locks[number];
    while (lock->held)
        turns_pass(me);
    pages_resume(me);
    struct process* process = pages_process(me);
    pages_count(me, DSM_LOCKS_ACQUIRED, 1);
    virtual_wait(&process->time, &lock->released);
    lock->held = true;
    const int from = lock->holder;
    lock->holder = me;
    if (from == me) return;
    // To the manager, from there to who had the lock last, who grants it: less where two of them are one.
    pages_end_interval(me);
    pages_end_interval(from);
    const struct vector_clock* theirs = &pages_process(from)->clock;
    const long request = wire_synchronisation(all->processes);
    const long grant = request + intervals_bytes(-1, &process->clock, theirs);
    const int manager = manager_of(number);
    int hops = 2;
    pages_message(me, request);
    if (manager != me && manager != from) {
        pages_message(manager, request);
        virtual_add(&pages_process(manager)->time, COST_SERVE, 1);
        hops++;
    }
    pages_message(from, grant);
    virtual_add(&pages_process(from)->time, COST_SERVE, 1);
    virtual_add(&process->time, COST_ROUNDTRIP, hops / 2.0);
    virtual_add(&process->time, COST_BYTE, (double)(request * (hops - 1) + grant));
    pages_hear_of(me, theirs);
}

void lock_release(int me, int number) {
    struct lock* lock = &all->locks[number];
    if (!lock->held || lock->holder != me) app_error("a lock is released that is not held");
    lock->held = false;
    lock->released = pages_process(me)->time;
}

const struct measured* synchronisation_measured(void) { return &all->measured; }
