// Which CPU of the described machine a thread runs on.
#pragma once

#include "described.hpp"

#include <cstddef>
#include <sched.h>

namespace homing::simulator {

/// The place of thread `number` in a team of `team` over places first..first+count-1, and the places that its
/// own inner teams have. OpenMP API 5.2, section 10.1.3: spread divides the places into as many parts as
/// there are threads, close fills one after the other, primary stays.
struct Partition {
    std::size_t first = 0;
    std::size_t count = 1;
};
Partition place_of(Binding binding, Partition all, std::size_t number, std::size_t team);

/// The CPU of the calling thread, and its place in the order of turns (`order` stays where the runtime knows
/// none): by its OpenMP thread numbers and team sizes at all levels where it is in a parallel region. Threads
/// outside OpenMP take the CPUs in turn, the first thread the first place.
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
