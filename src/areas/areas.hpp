// The memory the program has: static arrays of every loaded object by symbol name, and heap blocks by the
// place that allocated them. Hooks only note addresses; names and source lines are resolved later from the
// record.
#pragma once

#include "base/pages.hpp"

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace homing {

enum class AreaKind : std::uint8_t {
    static_array = 1,
    heap_block = 2,
    named = 3,
    segment = 4,
    arena = 5,   ///< memory of an allocator's that small blocks share (BlockCover)
    mapping = 6, ///< anonymous memory that the program has mapped itself
};

/// What an allocation is called by: a container of C++ that is not optimised takes eight frames itself, and
/// what tells two blocks of one allocator apart lies behind it. Four frames took 0.8 us for a block, sixteen
/// take up to 1.7 us, where the stack is so deep.
inline constexpr int max_origin_frames = 16;
/// Blocks of the same first frames are of one kind, whoever called.
inline constexpr int kind_frames = 4;

/// One area as the registry gives it out.
struct AreaEntry {
    Range range; ///< exact bytes as the program sees them
    AreaKind kind = AreaKind::heap_block;
    std::uint64_t generation = 0; ///< differs whenever an address is used again
    /// Heap: return addresses from the allocation outwards (0-terminated); static: empty.
    Address origin[max_origin_frames] = {};
    const char* name = nullptr; ///< static and named areas: lives as long as the process
    const char* object = nullptr;
};

/// Lock-free table of live heap blocks and named areas: note() and end() are called from allocator hooks by
/// any thread, snapshot() by the driver of the engine. Bounded: what does not fit is counted, never waited
/// for. There is one, area_registry(). No call but snapshot() allocates, locks or makes a system call.
class AreaRegistry {
  public:
    static constexpr std::size_t capacity = 1u << 16;

    constexpr AreaRegistry() noexcept = default;
    AreaRegistry(const AreaRegistry&) = delete;
    AreaRegistry& operator=(const AreaRegistry&) = delete;

    /// A block begins to live. A block that was noted at this address and never ended is replaced. False if
    /// there is no room near its place in the table (counted).
    bool note(Range range, AreaKind kind, const Address* origin, int frames, const char* name) noexcept;

    /// The block that begins at `start` ends now; returns its range (empty: unknown). Cheap for addresses
    /// that are not in the table (one load): hooks may call it for every free.
    Range end(Address start) noexcept;

    /// Does a live block begin here?
    bool knows(Address start) const noexcept;

    /// Live areas now, in order of address. Where two overlap (the end of one was missed) the newer one
    /// counts. Blocks that come or go while it runs may be in it or not; read changes() before to know
    /// whether to ask again.
    void snapshot(std::vector<AreaEntry>& out) const;
    std::uint64_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }
    /// Blocks that are noted later have a larger generation.
    std::uint64_t newest() const noexcept { return generation_.load(std::memory_order_acquire); }
    std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
    std::size_t live() const noexcept { return live_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> changes_{0};
    std::atomic<std::uint64_t> dropped_{0};
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<std::size_t> live_{0};
};

AreaRegistry& area_registry() noexcept;

/// Static arrays of `minimum` bytes or more of every loaded ELF object (its .symtab, else .dynsym); for an
/// object without usable symbols its whole writable segments as AreaKind::segment. Names are demangled where
/// the compiler's scheme is known (Fortran modules: module::array, COMMON blocks: /name/). Objects already in
/// `known` (by load address) are skipped and new ones added, so that dlopen'ed libraries can be added later
/// cheaply.
void static_areas(std::size_t minimum, std::vector<AreaEntry>& out, std::vector<Address>& known);

/// Memory that is not watched is named from so many bytes on, or from a hundredth of what is watched where
/// that is less.
inline constexpr std::size_t unwatched_minimum = std::size_t{1} << 20;
inline constexpr std::size_t unwatched_share = 100;

/// Memory that no area covers: stacks, shared memory, what no hook saw mapped. For the record: cannot be
/// watched.
struct Unwatched {
    Range range;           ///< of several pieces that are told together the first
    std::size_t bytes = 0; ///< that are populated, of all pieces
    std::string what;      ///< "[stack]", "data of libfoo.so", ...: what is there, which says why
};
std::vector<Unwatched> unwatched_mappings(const std::vector<Range>& watched, std::size_t minimum);

/// Is all of this memory mapped? Where that cannot be seen (no /proc): yes.
bool is_mapped(Range range);
/// Is it, and of one object: of one file, with the zeros after its data, or of none? No array of a program's
/// is of two.
bool is_of_one_object(Range range);

/// Bytes of a transparent huge page, as the kernel maps one by one entry: 2 MiB with base pages of 4 KiB, 512
/// MiB with 64 KiB.
std::size_t huge_granule_bytes() noexcept;

/// Does a mapping that overlaps `range` hold transparent huge pages? (from /proc/self/smaps; reads only what
/// is needed)
bool holds_huge_pages(Range range);

} // namespace homing
