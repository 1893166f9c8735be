#include "turns.h"

#include "app.h"
#include "dsm.h"
#include "memory.h"

#include <errno.h>
#include <semaphore.h>

enum state { READY, ASLEEP, GONE };

struct turns {
    int processes;
    enum state state[DSM_MOST_PROCESSES];
    sem_t turn[DSM_MOST_PROCESSES];
};

static struct turns* turns;

void turns_make(int processes) {
    turns = arena_take(sizeof *turns);
    turns->processes = processes;
    for (int process = 0; process < processes; process++)
        if (sem_init(&turns->turn[process], 1, 0) != 0) app_error("sem_init failed");
}

static void wait_for_turn(int me) {
    while (sem_wait(&turns->turn[me]) != 0)
        if (errno != EINTR) app_error("sem_wait failed");
}

void turns_join(int me) { wait_for_turn(me); }

// The next process after `me` that is ready, `me` itself last; -1: none.
static int next_ready(int me) {
    for (int step = 1; step <= turns->processes; step++) {
        int process = (me + step) % turns->processes;
        if (turns->state[process] == READY) return process;
    }
    return -1;
}

static void hand_on(int me) {
    int next = next_ready(me);
    if (next < 0) app_error("all processes wait for each other");
    if (next == me) return;
    sem_post(&turns->turn[next]);
    wait_for_turn(me);
}

void turns_pass(int me) { hand_on(me); }

void turns_sleep(int me) {
    turns->state[me] = ASLEEP;
    hand_on(me);
}

void turns_wake_all(void) {
    for (int process = 0; process < turns->processes; process++)
        if (turns->state[process] == ASLEEP) turns->state[process] = READY;
}

void turns_leave(int me) {
    turns->state[me] = GONE;
    int next = next_ready(me);
    if (next >= 0) sem_post(&turns->turn[next]);
}

bool turns_others(int me) {
    for (int process = 0; process < turns->processes; process++)
        if (process != me && turns->state[process] != GONE) return true;
    return false;
}
