// One process runs at a time, in the order of their numbers, each until it has to wait for another.
#ifndef HOMING_APPS_DSM_TURNS_H
#define HOMING_APPS_DSM_TURNS_H

#include <stdbool.h>

// Before the processes are made.
void turns_make(int processes);
// In a process other than 0: waits for its first turn.
void turns_join(int me);
// The next one that can go on has its turn; returns when the caller has one again.
void turns_pass(int me);
// The same, but the caller is passed over until turns_wake_all.
void turns_sleep(int me);
// All that sleep can go on.
void turns_wake_all(void);
// The caller will have no more turns.
void turns_leave(int me);
// Does anyone but `me` have turns?
bool turns_others(int me);

#endif
