// Which CPU of the described machine a thread runs on.
#pragma once

#include "described.hpp"

#include <cstddef>
#include <sched.h>

namespace homing::simulator {

/// The CPU of the calling thread, and its place in the order of turns (`order` stays where the runtime knows
/// none): by its OpenMP thread numbers and team sizes at all levels where it is in a parallel region, and by
/// the placement of the runtime that is there. Threads outside OpenMP take the CPUs in turn, the first thread
/// the first place.
int cpu_of_caller(const Described& machine, bool main, int ordinal, std::uint64_t& order);

/// Where a thread runs that may use these CPUs only, of which there is one at least: on `cpu` if that is one,
/// else threads take them in turn.
int allowed_cpu(const cpu_set_t& allowed, int cpu, int ordinal) noexcept;

/// Is this return address in the OpenMP runtime?
bool is_openmp_runtime(const void* caller) noexcept;

/// When the calling thread ends, `*alive` becomes false and `*self` null.
struct Thread;
void watch_thread_end(bool* alive, Thread** self) noexcept;

} // namespace homing::simulator
