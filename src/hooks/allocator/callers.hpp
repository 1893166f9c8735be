// Who calls the allocator: the place that a block comes from, and whether that is a library which allocates
// for itself.
#pragma once

#include "base/pages.hpp"

namespace homing::hooks {

namespace detail {
/// The C library's code. What it allocates itself are buffers of its own, for streams and directories (as
/// large as the file system likes its pieces: some megabytes on parallel ones), which it gives to the kernel
/// at any time, past the hooks of system calls.
inline constinit Range c_library;
/// The loader's, which allocates (calloc) a record of every object that it brings, before anything of that
/// runs. It allocates the thread-local storage of a new thread, too (stacks.hpp, creates_thread).
inline constinit Range loader;
/// Both, and what lies between them.
inline constinit Range libraries;
} // namespace detail

inline bool is_of_c_library(Address code) noexcept { return detail::c_library.contains(code); }
inline bool is_of_loader(Address code) noexcept { return detail::loader.contains(code); }
/// Code that allocates for itself, and frees what it likes at a thread's end, where an allocator has left
/// that thread already: jemalloc's malloc_usable_size() would set up anew what it keeps of a thread, and
/// crash.
inline bool is_of_library(Address code) noexcept { return is_of_c_library(code) || is_of_loader(code); }
/// False: it is none, as is soon told.
inline bool may_be_of_library(Address code) noexcept { return detail::libraries.contains(code); }

/// Do these functions lie in one loaded object?
bool same_object(const void* a, const void* b) noexcept;

} // namespace homing::hooks
