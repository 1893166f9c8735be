// Memory for homing's own code, apart from the program's heap (base/arena.hpp says why).
//
// Three ways lead here: what our code and the C++ library in it ask of malloc (the linker sends it, --wrap in
// CMakeLists.txt); what other libraries allocate while a thread is inside homing (heap.cpp; base/inside.hpp
// has the exception); and what dlsym allocates while the program's allocator is being looked up (heap.cpp).
#pragma once

#include "base/arena.hpp"

#include <cstddef>

namespace homing::hooks {

/// Null where the kernel gives no memory. `alignment`: a power of two.
void* own_allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
/// Of zeros; null also where the product is too large.
void* own_zeroed(std::size_t count, std::size_t bytes) noexcept;
/// Any pointer may be asked about.
inline bool is_own(const void* block) noexcept { return own_arena.owns(block); }
/// Of a block that is_own().
void own_free(void* block) noexcept;
/// As realloc(), of a block that is_own(), or of null.
void* own_reallocate(void* block, std::size_t bytes) noexcept;

/// Does what other libraries allocate for homing come from here? Not in sanitized builds, whose allocator
/// wants to see everything.
#ifdef HOMING_OWN_MEMORY
inline constexpr bool own_memory = true;
#else
inline constexpr bool own_memory = false;
#endif

/// From here on forked children find homing's memory whole. To be called before other fork handlers are
/// registered: theirs may allocate.
void keep_own_memory_whole() noexcept;

} // namespace homing::hooks
