// Memory for homing's own code, apart from the program's heap (base/arena.hpp says why).
//
// Three ways lead here: what our code and the C++ library in it ask of malloc (the linker sends it, --wrap in
// CMakeLists.txt); what the C library allocates for us while the preloaded library is set up, before the
// program has allocated anything; and what dlsym allocates while the program's allocator is being looked up
// (both in heap.cpp). What the C library allocates for us later stays the program's allocator's: a library
// that was loaded with RTLD_DEEPBIND (oneTBB loads hwloc so) frees what strdup() gave it past our free().
#pragma once

#include <cstddef>

namespace homing::doors {

/// Null where the kernel gives no memory. `alignment`: a power of two.
void* own_allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
/// Any pointer may be asked about.
bool is_own(const void* block) noexcept;
/// Of a block that is_own().
void own_free(void* block) noexcept;
/// As realloc(), of a block that is_own(), or of null.
void* own_reallocate(void* block, std::size_t bytes) noexcept;

/// This thread sets the library up: what the C library allocates comes from here. Not in sanitized builds,
/// whose allocator wants to see everything.
class Entering {
  public:
#ifdef HOMING_OWN_MEMORY
    Entering() noexcept { now = true; }
    ~Entering() { now = false; }
#else
    Entering() noexcept {}
    ~Entering() {}
#endif
    Entering(const Entering&) = delete;
    Entering& operator=(const Entering&) = delete;
    static inline constinit thread_local bool now = false;
};

/// From here on forked children find homing's memory whole. To be called before other fork handlers are
/// registered: theirs may allocate.
void keep_own_memory_whole() noexcept;

} // namespace homing::doors
