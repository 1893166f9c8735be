// Stacks: alternate signal stacks, the program's and ours, and memory that must never be armed because a
// stack may lie there.
#pragma once

#include <cstddef>

namespace homing {
class Windows;
}

namespace homing::hooks {

/// Before the first window, and not earlier: from now on threads that begin get a stack.
void prepare_stacks() noexcept;
/// From now on a fault of this thread finds a stack, wherever the thread's own may lie: on one that it
/// changed to itself (coroutines, user-level threads), whose page a window may have taken, the kernel could
/// not report it. Nothing where the program has given the thread an alternate stack, or where a handler of
/// another signal asks for one (SA_ONSTACK): it would run on ours. Threads that the program creates get
/// theirs when they begin.
void give_stack() noexcept;
/// Does this thread end, and was that seen (of threads that have a stack from us)? Then others that keep
/// something for each thread may have left it already.
bool thread_is_ending() noexcept;
/// Is this thread about to create another? What the loader allocates meanwhile is that one's thread-local
/// storage.
bool creates_thread() noexcept;
/// Is this the begin of the stack that this thread has from us?
bool is_own_stack(const void* begin) noexcept;
/// No thread gets a stack any more, and those that end keep theirs: from now on system calls may be
/// forbidden.
void give_no_more_stacks() noexcept;

/// Memory that must never be armed.
void note_alternate_stack(const void* begin, std::size_t bytes) noexcept;
/// Tell new windows of the memory that is known already.
bool exclude_alternate_stacks(Windows& windows) noexcept;

} // namespace homing::hooks
