// Threads take turns (--deterministic): one thread at a time runs instrumented code, for a stated number of
// accesses, in the order of their OpenMP numbers. So every run of a program counts the same.
//
// Nobody tells when a thread begins to wait for others (in a barrier, for a lock), so it is seen from
// outside: a turn ends when the thread has had its accesses, or sleeps in the kernel; and the next one begins
// only when every thread of the process sleeps there, or waits for its turn. Then what each of them does next
// does not depend on their speed. Some wait without sleep: libomp's primary thread, until all tasks are done;
// locks of programs. They yield, and a thread that yields waits for its next turn.
#pragma once

namespace homing::simulator {

struct Thread;

/// Wait for the turn: at the first access of a thread, and whenever it has had its accesses.
void take_turn(Thread& thread) noexcept;

/// The same for a thread that lets others go first. False: there are no turns, or it has none.
bool turn_instead_of_yield() noexcept;

/// The same before a thread asks the OpenMP runtime for work that is given to whoever comes first.
void turn_before_work() noexcept;

/// Was a turn taken from a thread that ran without an access for a while? Then counts may differ between
/// runs.
bool turns_were_cut() noexcept;

} // namespace homing::simulator
