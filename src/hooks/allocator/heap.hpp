// What the allocator hook offers to the others.
#pragma once

#include "areas/mapped.hpp"

#include <cstddef>
#include <cstdint>

namespace homing::hooks {

/// Blocks of so many bytes and more are noted one by one; SIZE_MAX: none (homing steps aside). Of smaller
/// ones only what memory they cover is counted, where `small` (areas/block_cover.hpp).
void note_blocks_from(std::size_t bytes, bool small = false) noexcept;
inline void note_no_blocks() noexcept { note_blocks_from(SIZE_MAX); }

/// At the start of the process: what the C library allocates for itself is not the program's, and the loader
/// allocates for objects that come.
void know_c_library() noexcept;
/// False: the program brings an allocator, and the loader asks that one.
bool loader_uses_our_allocator() noexcept;

/// The return addresses from `from` (the caller of a function of ours) outwards, at most max_origin_frames;
/// returns how many. Leaves errno as it was.
int origin_of(std::uintptr_t from, std::uintptr_t* origin) noexcept;
/// Is mapped memory of so many bytes to be told of, as blocks are?
bool notes_blocks_of(std::size_t bytes) noexcept;
/// Whose is memory that this code maps?
MappingLog::Owner owner_of_mappings(std::uintptr_t code) noexcept;

/// The program is about to unmap, move or replace this memory itself, or to protect it (then it stays): no
/// window may stand in its way, now or later.
void memory_changes(void* address, std::size_t bytes, bool stays) noexcept;
/// The same for a system call by number, which may be any.
void memory_changes_by(long number, const long* arguments) noexcept;

} // namespace homing::hooks
