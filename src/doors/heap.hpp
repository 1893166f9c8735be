// What the allocator door offers to the others.
#pragma once

#include <atomic>
#include <cstddef>

namespace homing::doors {

/// Blocks of so many bytes and more are noted; SIZE_MAX: none (homing steps aside).
extern std::atomic<std::size_t> heap_threshold;

/// The program is about to unmap, move or protect this memory itself: no window may stand in its way.
void memory_changes(void* address, std::size_t bytes) noexcept;

} // namespace homing::doors
