// Stacks: alternate signal stacks, the program's and ours, and memory that must never be armed because a
// stack may lie there.
#pragma once

#include <cstddef>

namespace homing {
class Windows;
}

namespace homing::doors {

/// At the start of a process in which homing may work: what give_stack() needs.
void prepare_stacks() noexcept;
/// From now on a fault of this thread finds a stack, wherever the thread's own may lie: on one that it
/// changed to itself (coroutines, user-level threads), whose page a window may have taken, the kernel could
/// not report it. Nothing where the program has given the thread an alternate stack. Threads that the program
/// creates get theirs when they begin.
void give_stack() noexcept;
/// Is this the begin of the stack that this thread has from us?
bool is_own_stack(const void* begin) noexcept;
/// No thread gets a stack any more, and those that end keep theirs: from now on system calls may be
/// forbidden.
void give_no_more_stacks() noexcept;

// A handler that asks for an alternate stack (SA_ONSTACK) must not get ours. As long as no thread of the
// program has one, the kernel is not told that it asks.

/// The flags that the kernel gets for flags of the program's.
int flags_for_kernel(int flags) noexcept;
/// Did the program ask for an alternate stack when it installed its handler of the signal?
bool asked_for_stack(int signal) noexcept;
/// It has installed one, with flags that the kernel got by flags_for_kernel(); it asked, or not.
void remember_asked(int signal, bool asked) noexcept;

/// Memory that must never be armed.
void note_alternate_stack(const void* begin, std::size_t bytes) noexcept;
/// Tell new windows of the memory that is known already.
bool exclude_alternate_stacks(Windows& windows) noexcept;

} // namespace homing::doors
