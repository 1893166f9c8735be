// What the start of homing in a process says of the machine and does to it: its rows in the record, the nodes
// that the user has bound the program to, and the pages of hooks.
#pragma once

#include "kernel/kernel.hpp"
#include "kernel/node_map.hpp"
#include "machine/machine.hpp"

namespace homing {

void record_machine(const Machine& machine, const NodeMap& nodes, Kernel& kernel);

/// A user who binds memory to some nodes (numactl --membind) means it: no page goes elsewhere.
void respect_binding(Kernel& kernel, Machine& machine);

/// What hooks of this thread use comes to its node. The program's part of it, its stack and thread-local
/// variables, only where the thread was bound to that node (by its runtime, after both were made), pages may
/// be moved at all, and the user has not said where memory is to lie.
void bring_pages_of_hooks(Kernel& kernel);

/// To be called by a new thread: what its creator wrote of its stack comes to its node, where it was created
/// bound to that node, pages may be moved at all, and the user has not said where memory is to lie. (The
/// creator is the master thread of a team: in the lab's patterns that page of each thread was 0.1 to 0.2 % of
/// all misses.) Takes no memory of the heap.
void bring_pages_of_new_thread(Kernel& kernel) noexcept;

} // namespace homing
