// homing's own data follows the thread that it works for. What the loader and the library's constructors
// wrote lies on the node where the process happened to start; then the OpenMP runtime binds its threads, and
// each event of theirs would cost accesses to another node. (Counted for CG in the lab: 6,000 remote misses a
// run, 0.4 % of what parallel initialisation leaves.) The stack and the thread-local variables of that thread
// lie there, too, where it was bound after they were made.
#pragma once

#include "kernel/kernel.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace homing {

/// Whole pages of this library's data, constant and not, and of its own memory (base/arena.hpp).
std::vector<Range> own_ranges();

/// Whole pages of the calling thread's that homing uses in its hooks: its stack around the caller's frame,
/// our thread-local variables, and where its thread pointer points to. Empty where the caller is not on the
/// thread's own stack.
std::vector<Range> thread_ranges();

/// Of a thread that has just begun: what whoever created it wrote, its control block and its thread-local
/// variables, which lie between the caller's frame and the thread pointer. Empty where they lie elsewhere.
Range block_of_new_thread() noexcept;

/// Move the pages of the ranges to the node, an index of the operating system's; how many came. What is
/// shared with other processes or cannot be moved stays where it is: that costs some time, nothing else.
std::size_t bring_pages(Kernel& kernel, std::span<const Range> ranges, int node);

/// The same for a few pages, without memory of the heap: only the first 64 are looked at.
std::size_t bring_few_pages(Kernel& kernel, Range range, int node) noexcept;

} // namespace homing
