// What the allocator door offers to the others.
#pragma once

#include <atomic>
#include <cstddef>

namespace homing::doors {

/// Blocks of so many bytes and more are noted; SIZE_MAX: none (homing steps aside).
extern std::atomic<std::size_t> heap_threshold;

/// At the start of the process: what the C library allocates for itself is not the program's, and the loader
/// allocates for objects that come.
void know_c_library() noexcept;
/// False: the program brings an allocator, and the loader asks that one.
bool loader_uses_our_allocator() noexcept;

/// The program is about to unmap, move, replace or protect this memory itself: no window may stand in its
/// way, now or later.
void memory_changes(void* address, std::size_t bytes) noexcept;
/// The same for a system call by number, which may be any.
void memory_changes_by(long number, const long* arguments) noexcept;

} // namespace homing::doors
