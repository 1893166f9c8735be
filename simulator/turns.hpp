// Threads take turns (--deterministic): one thread at a time runs instrumented code, for a stated number of
// accesses.
#pragma once

namespace homing::simulator {

struct Thread;

/// The thread has had its accesses: wait until all others of the team had theirs.
void take_turn(Thread& thread) noexcept;

} // namespace homing::simulator
