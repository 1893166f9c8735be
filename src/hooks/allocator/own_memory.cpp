#include "hooks/allocator/own_memory.hpp"

#include "base/own_strings.hpp"

#include <pthread.h>

namespace homing::hooks {

void* own_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    return own_arena.allocate(bytes, alignment);
}

void* own_zeroed(std::size_t count, std::size_t bytes) noexcept {
    std::size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
    void* block = own_allocate(all);
    if (block) own_clear(block, all);
    return block;
}

void own_free(void* block) noexcept { own_arena.free(block); }

void* own_reallocate(void* block, std::size_t bytes) noexcept {
    if (!block) return own_arena.allocate(bytes);
    const std::size_t room = Arena::usable_size(block);
    if (bytes <= room) return block;
    void* fresh = own_arena.allocate(bytes);
    if (!fresh) return nullptr;
    own_copy(fresh, block, room);
    own_arena.free(block);
    return fresh;
}

void keep_own_memory_whole() noexcept {
    const auto after = [] { own_arena.after_fork(); };
    ::pthread_atfork([] { own_arena.before_fork(); }, after, after);
}

} // namespace homing::hooks

#ifdef HOMING_OWN_MEMORY

// What the C library allocated and our code frees is the program's allocator's, and so is all where the
// kernel gives no memory for our own.
using namespace homing::hooks;

extern "C" {

void* __real_malloc(std::size_t bytes);
void __real_free(void* block);
void* __real_calloc(std::size_t count, std::size_t bytes);
void* __real_realloc(void* block, std::size_t bytes);
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);

void* __wrap_malloc(std::size_t bytes) {
    void* block = own_allocate(bytes);
    return block ? block : __real_malloc(bytes);
}

void __wrap_free(void* block) {
    if (is_own(block))
        own_free(block);
    else
        __real_free(block);
}

void* __wrap_calloc(std::size_t count, std::size_t bytes) {
    void* block = own_zeroed(count, bytes);
    return block ? block : __real_calloc(count, bytes); // which also sets errno
}

void* __wrap_realloc(void* block, std::size_t bytes) {
    if (!block) return __wrap_malloc(bytes);
    return is_own(block) ? own_reallocate(block, bytes) : __real_realloc(block, bytes);
}

void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
    void* block = own_allocate(bytes, alignment);
    return block ? block : __real_aligned_alloc(alignment, bytes);
}

} // extern "C"

#endif
