// The allocator hook: large blocks are noted when they are born, and end before their memory is freed or
// moved. Of small ones (a page and more) the memory that they cover is counted, by which it is known
// where in the allocator's memory a page may be protected (areas/block_cover.hpp).
//
// Rules here: no allocation, no lock, no printing. Three hard cases, solved where they stand:
//  - dlsym may allocate while we look up the real allocator: homing's own memory answers (own_memory.hpp);
//  - what the C library allocates for homing is not the program's, and lies apart from it: ours();
//  - free() sees every pointer: only blocks that lie among those that were noted, and whose usable size
//  reaches a threshold, are more to it than the allocator's call.
//
// Programs allocate and free small blocks all the time: what that takes is counted in instructions
// (tests/python/test_allocator_cost.py).
#include "hooks/allocator/heap.hpp"
#include "areas/allocation_plans.hpp"
#include "areas/areas.hpp"
#include "areas/block_cover.hpp"
#include "areas/named.hpp"
#include "base/inside.hpp"
#include "base/random.hpp"
#include "hooks/allocator/callers.hpp"
#include "hooks/allocator/own_memory.hpp"
#include "hooks/export.hpp"
#include "hooks/signals/stacks.hpp"
#include "hooks/syscalls/own_calls.hpp"
#include "machine/simulation.hpp"
#include "sources/windows.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <malloc.h>

namespace homing::hooks {
namespace {

/// From so many bytes on blocks are noted one by one, and smaller ones are counted from
/// BlockCover::smallest_block usable bytes on. What is asked for may be less than what is usable: allocators
/// round up, by a quarter at the most.
constinit std::atomic<std::size_t> heap_threshold{SIZE_MAX};
constinit std::atomic<std::size_t> least_asked{SIZE_MAX};

constinit Real<void*(std::size_t)> real_malloc{"malloc"};
constinit Real<void*(std::size_t, std::size_t)> real_calloc{"calloc"};
constinit Real<void*(void*, std::size_t)> real_realloc{"realloc"};
constinit Real<void(void*)> real_free{"free"};
constinit Real<int(void**, std::size_t, std::size_t)> real_posix_memalign{"posix_memalign"};
constinit Real<void*(std::size_t, std::size_t)> real_aligned_alloc{"aligned_alloc"};
constinit Real<void*(std::size_t, std::size_t)> real_memalign{"memalign"};
constinit Real<void*(std::size_t)> real_valloc{"valloc"};
constinit Real<void*(std::size_t)> real_pvalloc{"pvalloc"};
constinit Real<std::size_t(void*)> real_usable_size{"malloc_usable_size"};

/// Is the allocator glibc's, which keeps the size of a block before it? Then that is read there, which costs
/// nothing (malloc() has just written it, free() is about to read it) and bears any moment of a thread's
/// life.
constinit std::atomic<bool> size_is_in_front{false};
/// Blocks for which less is asked are small, where it is; else 0.
constinit std::atomic<std::size_t> small_below{0};

/// What stands before a block of glibc's allocator: its size, and in the lowest bits whether it has a mapping
/// of its own, which goes with it.
struct Front {
    std::size_t word;
    static constexpr std::size_t own_mapping = 2, all_bits = 7;
    bool has_own_mapping() const noexcept { return (word & own_mapping) != 0; }
    /// What has a mapping of its own has a word less, which lies in no page of the block's.
    std::size_t usable() const noexcept { return (word & ~all_bits) - sizeof word; }
};
Front front_of(const void* block) noexcept { return {static_cast<const std::size_t*>(block)[-1]}; }

std::size_t usable_size(void* block) noexcept {
    return size_is_in_front.load(std::memory_order_relaxed) ? front_of(block).usable()
                                                            : real_usable_size(block);
}

constinit thread_local bool looking_up = false;

struct LookUp {
    LookUp() noexcept { looking_up = true; }
    ~LookUp() { looking_up = false; }
};

void look_up_all() noexcept {
    const LookUp guard;
    real_free.get();
    real_calloc.get();
    real_realloc.get();
    real_usable_size.get();
    real_malloc.get();
}

constinit std::atomic<bool> looked_up{false};

/// Look the real allocator up once. False: we are inside that look-up; homing's own memory must answer.
__attribute__((always_inline)) inline bool ready() noexcept {
    if (__builtin_expect(looked_up.load(std::memory_order_relaxed), 1)) return true;
    if (looking_up) return false;
    look_up_all();
    looked_up.store(true, std::memory_order_relaxed);
    return true;
}

/// Nothing of ours can be reached yet (export.hpp).
__attribute__((always_inline)) inline bool is_too_early() noexcept {
    return __builtin_expect(!looked_up.load(std::memory_order_relaxed), 0) && !is_relocated();
}

/// Does homing's own memory answer?
__attribute__((always_inline)) inline bool ours() noexcept {
    return (own_memory && is_inside() && !is_borrowing) || !ready();
}

/// All blocks that were ever noted begin from here to here, and others between them.
constinit std::atomic<Address> first_noted{~Address{0}};
constinit std::atomic<Address> last_noted{0};

void widen_noted(Address begin) noexcept {
    for (Address first = first_noted.load(std::memory_order_relaxed);
         begin < first && !first_noted.compare_exchange_weak(first, begin, std::memory_order_relaxed);) {
    }
    for (Address last = last_noted.load(std::memory_order_relaxed);
         begin > last && !last_noted.compare_exchange_weak(last, begin, std::memory_order_relaxed);) {
    }
}

/// Where blocks that are noted one by one have ever begun, a bit for each MiB (some share one): most that is
/// freed lies elsewhere, and the registry need not be asked.
constinit std::atomic<std::uint64_t> noted_places[128]{};

struct NotedPlace {
    std::atomic<std::uint64_t>& word;
    std::uint64_t bit;
};

NotedPlace noted_place(Address begin) noexcept {
    const std::size_t place = table_place(begin >> 20, 13);
    return {noted_places[place >> 6], std::uint64_t{1} << (place & 63)};
}

/// A block begins to live: note it with the place it came from, which is `from` and what called that. The
/// unwinder (glibc's _dl_find_object) takes no lock and allocates nothing.
__attribute__((noinline)) void note(void* block, std::size_t bytes, Address from) noexcept {
    if (!block || is_inside() || is_of_c_library(from)) return;
    const Inside inside;
    Address origin[max_origin_frames] = {};
    const int frames = origin_of(from, origin);
    const Address begin = reinterpret_cast<Address>(block);
    widen_noted(begin);
    if (auto [word, bit] = noted_place(begin); !(word.load(std::memory_order_relaxed) & bit))
        word.fetch_or(bit, std::memory_order_relaxed);
    area_registry().note({begin, begin + bytes}, AreaKind::heap_block, origin, frames, nullptr);
    if (allocation_plans().any())
        allocation_plans().begins({begin, begin + bytes}, place_and_size(bytes, origin));
}

/// What was allocated lately by one place, told apart by who called the allocator, and how deep the stack was
/// (which differs where the caller is an allocator of its own, such as operator new).
struct Lately {
    Address from = 0;
    Address stack = 0;
    std::size_t bytes = 0;
    BlockSites::Site site = 0;
};
constexpr std::size_t lately_places = 16;
constinit thread_local Lately lately[lately_places] = {};

/// The place of a small block. The stack is unwound (a microsecond) where a place has allocated so much that
/// this is nothing to it.
BlockSites::Site site_of(std::size_t bytes, Address from) noexcept {
    constexpr std::size_t worth_a_look = std::size_t{32} << 10;
    const auto stack = reinterpret_cast<Address>(__builtin_frame_address(0));
    Lately& place = lately[table_place(from ^ stack, 4)];
    static_assert(lately_places == 16);
    if (place.from != from || place.stack != stack) place = {from, stack, 0, 0};
    place.bytes += bytes;
    if (place.site == 0 && place.bytes >= worth_a_look) {
        const Inside inside;
        Address origin[max_origin_frames] = {};
        place.site = block_cover().sites().intern(origin, origin_of(from, origin));
        place.bytes = 0; // where there is no room for it: not too soon again
    }
    return place.site;
}

/// Of the small blocks of a thread one in sixteen or so is looked at more closely, and stands for the others:
/// where it comes from, and how much comes and goes. Which one is left to chance, as programs allocate in
/// turns.
struct Closer {
    int allocations = 0, frees = 0; ///< until the next one
    std::uint64_t random = splitmix_step;
};
constinit thread_local Closer closer;
constexpr std::size_t blocks_a_look = 16;

int next_look() noexcept {
    closer.random += splitmix_step;
    return static_cast<int>(mixed(closer.random) % (2 * blocks_a_look - 1));
}

__attribute__((noinline)) void look_at_allocation(Range range, Address from) noexcept {
    closer.allocations = next_look();
    block_cover().note_site(range, site_of(blocks_a_look * range.bytes(), from));
    block_cover().count_churn(blocks_a_look * range.bytes());
}

__attribute__((noinline)) void look_at_free(Range range) noexcept {
    closer.frees = next_look();
    block_cover().count_churn(blocks_a_look * range.bytes());
}

/// Pages of a small block that is about to end: who arms pages looks whether they still lie within blocks
/// after it has said that it does, and this is asked after they no longer do.
void let_go(Range range) noexcept {
    Windows* windows = armed_windows.load(std::memory_order_seq_cst);
    if (__builtin_expect(windows != nullptr, 0)) windows->release(range);
}

/// A small block begins to live. What a library allocates for itself is none.
__attribute__((noinline)) void count(void* block, std::size_t usable, Address from) noexcept {
    const Range range = range_of(block, usable);
    if (is_of_library(from)) return let_go(block_cover().forget(range));
    if (usable < BlockCover::smallest_block) return;
    block_cover().add(range);
    if (--closer.allocations < 0) look_at_allocation(range, from);
}

/// A block begins to live, which is large enough to be told of.
__attribute__((noinline)) void begins(void* block, std::size_t bytes, Address from) noexcept {
    if (bytes >= heap_threshold.load(std::memory_order_relaxed))
        note(block, bytes, from);
    else if (block && !is_inside() && real_usable_size.get())
        count(block, usable_size(block), from);
}

/// malloc() of so many bytes, at least_asked or more and below small_below.
__attribute__((noinline)) void* allocate_small(std::size_t bytes, Address from) {
    void* block = real_malloc.known()(bytes);
    if (__builtin_expect(block == nullptr, 0)) return block;
    const Range range{reinterpret_cast<Address>(block),
                      reinterpret_cast<Address>(block) + front_of(block).usable()};
    BlockCover::Page page = block_cover().at_once(range.begin);
    if (__builtin_expect(may_be_of_library(from) || page.is_unknown(), 0)) {
        count(block, range.bytes(), from);
        return block;
    }
    page.add(range);
    if (__builtin_expect(--closer.allocations < 0, 0)) look_at_allocation(range, from);
    return block;
}

/// A block is about to end: nothing of it may be armed from here on.
Range end(void* block) noexcept {
    const auto begin = reinterpret_cast<Address>(block);
    if (auto [word, bit] = noted_place(begin); !(word.load(std::memory_order_relaxed) & bit)) return {};
    const Range range = area_registry().end(begin);
    if (range.empty()) return range;
    end_named_areas(range);
    if (Windows* windows = active_windows.load(std::memory_order_acquire)) windows->release(range);
    allocation_plans().ends(range);
    return range;
}

/// May a block for which so many bytes were asked be told of at all?
bool counts(std::size_t asked) noexcept { return asked >= least_asked.load(std::memory_order_relaxed); }

__attribute__((always_inline)) inline bool among_noted(const void* block) noexcept {
    const Address begin = reinterpret_cast<Address>(block);
    return begin >= first_noted.load(std::memory_order_relaxed) &&
           begin <= last_noted.load(std::memory_order_relaxed);
}

/// A block ends now, if it was told of: nothing of it may be armed from here on. Returns what it was; nothing
/// where it was not told of. The allocator is asked for the size where a small block was counted that begins
/// in this page, and of nothing else: an allocator that has left this thread may not bear the question.
Range end_known(void* block, Address from) noexcept {
    const auto begin = reinterpret_cast<Address>(block);
    if (!block_cover().begins_in_page_of(begin)) return among_noted(block) ? end(block) : Range{};
    const std::size_t large = heap_threshold.load(std::memory_order_relaxed);
    if (!size_is_in_front.load(std::memory_order_relaxed) && (thread_is_ending() || is_of_library(from))) {
        const Range range = end(block);
        if (range.empty()) let_go(block_cover().forget({begin, begin + 2 * large}));
        return range;
    }
    const std::size_t bytes = usable_size(block);
    if (bytes < BlockCover::smallest_block) return {};
    // The size that was asked for decided which way it is known, which may be a little less.
    if (bytes >= large)
        if (const Range range = end(block); !range.empty() || bytes >= 2 * large) return range;
    const Range range = range_of(block, bytes);
    block_cover().remove(range);
    let_go(range);
    if (--closer.frees < 0) look_at_free(range);
    return range;
}

/// Who called the function that this is written in.
__attribute__((always_inline)) inline Address caller() noexcept {
    return reinterpret_cast<Address>(__builtin_extract_return_addr(__builtin_return_address(0)));
}

__attribute__((always_inline)) inline void* noted(void* block, std::size_t bytes) noexcept {
    if (__builtin_expect(counts(bytes), 0)) begins(block, bytes, caller());
    return block;
}

__attribute__((noinline)) void* allocate_slowly(std::size_t bytes, Address from) {
    if (is_too_early()) return early(real_malloc, bytes);
    if (ours()) {
        void* block = own_allocate(bytes);
        if (block || looking_up) return block;
    }
    void* block = real_malloc(bytes);
    if (counts(bytes)) begins(block, bytes, from);
    return block;
}

/// malloc(). Always part of its caller. Programs that allocate small blocks all the time pay for this and for
/// free(): each has a way without a frame of its own.
__attribute__((always_inline)) inline void* allocate(std::size_t bytes) {
    auto* real = real_malloc.known();
    if (__builtin_expect(real && !is_inside(), 1)) {
        if (!counts(bytes)) return real(bytes);
        if (bytes < small_below.load(std::memory_order_relaxed)) return allocate_small(bytes, caller());
    }
    return allocate_slowly(bytes, caller());
}

__attribute__((noinline)) void free_slowly(void* block, Address from) {
    if (is_too_early()) return early(real_free, block);
    if (is_own(block)) return own_free(block);
    if (!ready()) return;
    Simulation* const simulated = simulation();
    const bool own = simulated && area_registry().knows(reinterpret_cast<Address>(block)) &&
                     front_of(block).has_own_mapping();
    const Range range = end_known(block, from);
    real_free(block);
    // Its pages lose their homes where the real kernel takes them back.
    if (simulated && !range.empty()) simulated->freed(pages_of(range), own);
}

/// What is to be done at times where a small block ends.
__attribute__((noinline)) void free_counted(void* block) {
    const Range range = range_of(block, front_of(block).usable());
    if (Windows* windows = armed_windows.load(std::memory_order_seq_cst)) windows->release_small(range);
    if (closer.frees < 0) look_at_free(range);
    real_free.known()(block);
}

/// May it be that this block was noted?
__attribute__((always_inline)) inline bool may_be_noted(void* block) noexcept {
    if (!among_noted(block)) return false;
    auto [word, bit] = noted_place(reinterpret_cast<Address>(block));
    return (word.load(std::memory_order_relaxed) & bit) != 0;
}

/// free(). Nothing is to be done of most blocks, and little of small ones that were counted; their size is
/// read where such a one begins in this page.
__attribute__((always_inline)) inline void release_block(void* block, Address from) {
    auto* real = real_free.known();
    if (__builtin_expect(!real || own_arena.spans(block), 0)) return free_slowly(block, from);
    BlockCover::Page page = block_cover().at_once(reinterpret_cast<Address>(block));
    if (page.is_unknown() || !page.block_begins()) {
        if (__builtin_expect(page.is_elsewhere() || may_be_noted(block), 0)) return free_slowly(block, from);
        return real(block);
    }
    if (__builtin_expect(!size_is_in_front.load(std::memory_order_relaxed), 0))
        return free_slowly(block, from);
    const std::size_t bytes = front_of(block).usable();
    if (bytes < BlockCover::smallest_block) return real(block);
    // What was asked for decided which way it is known, which may be a little less than its size.
    if (__builtin_expect(bytes >= heap_threshold.load(std::memory_order_relaxed), 0))
        return free_slowly(block, from);
    page.remove();
    // From here on no window arms its pages; one that has looked before must be asked.
    if (__builtin_expect(--closer.frees < 0 || armed_windows.load(std::memory_order_seq_cst) != nullptr, 0))
        return free_counted(block);
    return real(block);
}

/// realloc(), part of its caller.
__attribute__((always_inline)) inline void* reallocate(void* block, std::size_t bytes) {
    if (is_too_early()) return early(real_realloc, block, bytes);
    if (!block) return allocate(bytes);
    if (is_own(block)) return own_reallocate(block, bytes);
    const Range before = end_known(block, caller());
    const bool own = !before.empty() && simulation() && front_of(block).has_own_mapping();
    void* fresh = real_realloc(block, bytes);
    if (own && fresh && fresh != block) simulation()->remapped(before, range_of(fresh, bytes));
    if (!fresh && bytes != 0 && !before.empty()) { // the old block lives on
        begins(block, before.bytes(), caller());
        return nullptr;
    }
    return noted(fresh, bytes);
}

} // namespace
} // namespace homing::hooks

using namespace homing::hooks;
using homing::Address;

extern "C" {

HOMING_EXPORT void* malloc(std::size_t bytes) { return allocate(bytes); }

HOMING_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
    if (is_too_early()) return early(real_calloc, count, bytes);
    if (__builtin_expect(ours(), 0)) {
        void* block = own_zeroed(count, bytes);
        if (block || looking_up) return block;
    }
    if (__builtin_expect(is_of_loader(caller()), 0) && !creates_thread()) object_comes();
    void* block = real_calloc(count, bytes);
    return block ? noted(block, count * bytes) : nullptr;
}

HOMING_EXPORT void free(void* block) {
    // Nothing to free: dlsym and dlerror do this all the time, also while we look up what is behind us, and a
    // sanitizer's free() begins by setting itself up, in the middle of that.
    if (!block) return;
    release_block(block, caller());
}

HOMING_EXPORT void* realloc(void* block, std::size_t bytes) { return reallocate(block, bytes); }

// glibc's reallocarray calls realloc inside libc, where we are not seen.
HOMING_EXPORT void* reallocarray(void* block, std::size_t count, std::size_t bytes) {
    std::size_t total = 0;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        set_error(ENOMEM);
        return nullptr;
    }
    return reallocate(block, total);
}

HOMING_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
    if (is_too_early()) return early(real_posix_memalign, block, alignment, bytes);
    if (ours() && (*block = own_allocate(bytes, alignment))) return 0;
    if (looking_up) return ENOMEM;
    const int error = real_posix_memalign(block, alignment, bytes);
    if (error == 0) noted(*block, bytes);
    return error;
}

HOMING_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    if (is_too_early()) return early(real_aligned_alloc, alignment, bytes);
    if (ours()) return own_allocate(bytes, alignment);
    return noted(real_aligned_alloc(alignment, bytes), bytes);
}

HOMING_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
    if (is_too_early()) return early(real_memalign, alignment, bytes);
    if (ours()) return own_allocate(bytes, alignment);
    return noted(real_memalign(alignment, bytes), bytes);
}

HOMING_EXPORT void* valloc(std::size_t bytes) {
    if (is_too_early()) return early(real_valloc, bytes);
    return ready() ? noted(real_valloc(bytes), bytes) : nullptr;
}
HOMING_EXPORT void* pvalloc(std::size_t bytes) {
    if (is_too_early()) return early(real_pvalloc, bytes);
    return ready() ? noted(real_pvalloc(bytes), bytes) : nullptr;
}

} // extern "C"

namespace homing::hooks {

void note_blocks_from(std::size_t bytes, bool small) noexcept {
    // An allocator that does not tell the size of a block leaves that question to the next one, whose blocks
    // they are not.
    small = small && same_object(next_definition("malloc"), next_definition("malloc_usable_size"));
    constexpr std::size_t smallest = BlockCover::smallest_block;
    small = small && smallest < bytes;
    heap_threshold.store(bytes, std::memory_order_relaxed);
    // What the C library's has is known: all that it gives but a word, and to ask for the size of others'
    // would cost a cache miss.
    const bool of_library = is_of_c_library(reinterpret_cast<Address>(next_definition("malloc")));
    const std::size_t rounding = of_library ? sizeof(std::size_t) - 1 : smallest / 8;
#if defined(__x86_64__) // elsewhere the pointer may bear a tag that is not that of the size
    size_is_in_front.store(small && of_library, std::memory_order_relaxed);
    small_below.store(small && of_library ? bytes : 0, std::memory_order_relaxed);
#endif
    least_asked.store(small ? smallest - rounding : bytes, std::memory_order_relaxed);
}

bool notes_blocks_of(std::size_t bytes) noexcept {
    return bytes >= heap_threshold.load(std::memory_order_relaxed);
}

} // namespace homing::hooks
