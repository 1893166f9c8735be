// The allocator hook: large blocks are noted when they are born, and end before their memory is freed or
// moved. Of small ones (a page and more) the memory that they cover is counted, by which it is known
// where in the allocator's memory a page may be protected (areas/block_cover.hpp).
//
// Rules here: no allocation, no lock, no printing. Three hard cases, solved where they stand:
//  - dlsym may allocate while we look up the real allocator: homing's own memory answers (own_memory.hpp);
//  - what the C library allocates for homing is not the program's, and lies apart from it: ours();
//  - free() sees every pointer: only blocks that lie among those that were noted, and whose usable size
//  reaches a threshold, are more to it than the allocator's call.
#include "hooks/allocator/heap.hpp"
#include "areas/allocation_plans.hpp"
#include "areas/areas.hpp"
#include "areas/block_cover.hpp"
#include "areas/named.hpp"
#include "base/inside.hpp"
#include "base/loaded_object.hpp"
#include "base/random.hpp"
#include "hooks/allocator/own_memory.hpp"
#include "hooks/export.hpp"
#include "hooks/signals/stacks.hpp"
#include "hooks/syscalls/own_calls.hpp"
#include "machine/simulation.hpp"
#include "sources/windows.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <link.h>
#include <malloc.h>
#include <unwind.h>

namespace homing::hooks {
namespace {

/// From so many bytes on blocks are noted one by one, and smaller ones are counted from so many usable bytes
/// on. What is asked for may be less than what is usable: allocators round up, by a quarter at the most.
constinit std::atomic<std::size_t> heap_threshold{SIZE_MAX};
constinit std::atomic<std::size_t> count_threshold{SIZE_MAX};
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

struct Frames {
    Address* out;
    int count;
    Address first; ///< 0: it was met
};

_Unwind_Reason_Code collect(_Unwind_Context* context, void* data) {
    auto* frames = static_cast<Frames*>(data);
    const Address at = _Unwind_GetIP(context);
    if (frames->first != 0 && at != frames->first) return _URC_NO_REASON;
    frames->first = 0;
    if (frames->count == max_origin_frames) return _URC_END_OF_STACK;
    frames->out[frames->count++] = at;
    return _URC_NO_REASON;
}

/// The C library's code. What it allocates itself are buffers of its own, for streams and directories (as
/// large as the file system likes its pieces: some megabytes on parallel ones), which it gives to the kernel
/// at any time, past the hooks of system calls.
constinit Range c_library;
/// The loader's, which allocates (calloc) a record of every object that it brings, before anything of that
/// runs. It allocates the thread-local storage of a new thread, too (stacks.hpp, creates_thread).
constinit Range loader;
constinit bool loader_asks_us = false;
/// The code of an allocator that stands in the C library's place: of a library behind us, or of the program,
/// which then calls that one and not us.
constinit Range allocator;
constinit bool allocator_is_first = false;

struct TwoPlaces {
    Address a, b;
    bool together;
};

int find_both(dl_phdr_info* object, std::size_t, void* data) noexcept {
    auto& places = *static_cast<TwoPlaces*>(data);
    if (segment_of(*object, places.a).empty()) return 0;
    places.together = !segment_of(*object, places.b).empty();
    return 1;
}

/// Do these functions lie in one loaded object?
bool same_object(const void* a, const void* b) noexcept {
    TwoPlaces places{reinterpret_cast<Address>(a), reinterpret_cast<Address>(b), false};
    ::dl_iterate_phdr(find_both, &places);
    return places.together;
}

int find_code(dl_phdr_info* object, std::size_t, void* code) noexcept {
    auto& found = *static_cast<Range*>(code);
    const Range segment = segment_of(*object, found.begin);
    if (segment.empty()) return 0;
    found = segment;
    return 1;
}

/// Does this object, ours, have that function?
int is_ours(dl_phdr_info* object, std::size_t, void* function) noexcept {
    const auto address = reinterpret_cast<Address>(*static_cast<const void**>(function));
    return is_this_library(*object) && !segment_of(*object, address).empty();
}

/// A block begins to live: note it with the place it came from, which is `from` and what called that. The
/// unwinder (glibc's _dl_find_object) takes no lock and allocates nothing.
__attribute__((noinline)) void note(void* block, std::size_t bytes, Address from) noexcept {
    if (!block || is_inside() || c_library.contains(from)) return;
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

/// Code that allocates for itself, and frees what it likes at a thread's end, where an allocator has left
/// that thread already: jemalloc's malloc_usable_size() would set up anew what it keeps of a thread, and
/// crash.
bool is_of_library(Address code) noexcept { return c_library.contains(code) || loader.contains(code); }

/// Pages of a small block that is about to end: who arms pages looks whether they still lie within blocks
/// after it has said that it does, and this is asked after they no longer do.
void let_go(Range range) noexcept {
    Windows* windows = armed_windows.load(std::memory_order_seq_cst);
    if (__builtin_expect(windows != nullptr, 0)) windows->release(range);
}

/// A small block begins to live. What a library allocates for itself is none.
__attribute__((noinline)) void count(void* block, std::size_t bytes, Address from) noexcept {
    if (!block || is_inside()) return;
    if (is_of_library(from)) return let_go(block_cover().forget(range_of(block, bytes)));
    const Range range = range_of(block, real_usable_size(block));
    if (range.bytes() < count_threshold.load(std::memory_order_relaxed)) return;
    widen_noted(range.begin);
    block_cover().add(range, site_of(range.bytes(), from));
}

/// A block begins to live, which is large enough to be told of.
void begins(void* block, std::size_t bytes, Address from) noexcept {
    if (bytes >= heap_threshold.load(std::memory_order_relaxed))
        note(block, bytes, from);
    else if (real_usable_size.get())
        count(block, bytes, from);
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

/// Does a block of glibc's allocator have a mapping of its own, which goes with it? (The second bit of the
/// size that stands before every block.)
bool has_own_mapping(const void* block) noexcept {
    return (static_cast<const std::size_t*>(block)[-1] & 2) != 0;
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
    if (!among_noted(block)) return {};
    const auto begin = reinterpret_cast<Address>(block);
    if (!block_cover().begins_in_page_of(begin)) return end(block);
    const std::size_t large = heap_threshold.load(std::memory_order_relaxed);
    if (thread_is_ending() || is_of_library(from)) {
        const Range range = end(block);
        if (range.empty()) let_go(block_cover().forget({begin, begin + 2 * large}));
        return range;
    }
    const std::size_t bytes = real_usable_size(block);
    if (bytes < count_threshold.load(std::memory_order_relaxed)) return {};
    // The size that was asked for decided which way it is known, which may be a little less.
    if (bytes >= large)
        if (const Range range = end(block); !range.empty() || bytes >= 2 * large) return range;
    const Range range = range_of(block, bytes);
    block_cover().remove(range);
    let_go(range);
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
    if (__builtin_expect(real && !(own_memory && is_inside()) && !counts(bytes), 1)) return real(bytes);
    return allocate_slowly(bytes, caller());
}

__attribute__((noinline)) void free_slowly(void* block, Address from) {
    if (is_too_early()) return early(real_free, block);
    if (is_own(block)) return own_free(block);
    if (!ready()) return;
    Simulation* const simulated = simulation();
    const bool own =
        simulated && area_registry().knows(reinterpret_cast<Address>(block)) && has_own_mapping(block);
    const Range range = end_known(block, from);
    real_free(block);
    // Its pages lose their homes where the real kernel takes them back.
    if (simulated && !range.empty()) simulated->freed(pages_of(range), own);
}

/// realloc(), part of its caller.
__attribute__((always_inline)) inline void* reallocate(void* block, std::size_t bytes) {
    if (is_too_early()) return early(real_realloc, block, bytes);
    if (!block) return allocate(bytes);
    if (is_own(block)) return own_reallocate(block, bytes);
    const Range before = end_known(block, caller());
    const bool own = !before.empty() && simulation() && has_own_mapping(block);
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
using homing::Range;

extern "C" {

HOMING_EXPORT void* malloc(std::size_t bytes) { return allocate(bytes); }

HOMING_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
    if (is_too_early()) return early(real_calloc, count, bytes);
    if (__builtin_expect(ours(), 0)) {
        void* block = own_zeroed(count, bytes);
        if (block || looking_up) return block;
    }
    if (__builtin_expect(loader.contains(caller()), 0) && !creates_thread()) object_comes();
    void* block = real_calloc(count, bytes);
    return block ? noted(block, count * bytes) : nullptr;
}

HOMING_EXPORT void free(void* block) {
    // Nothing to free: dlsym and dlerror do this all the time, also while we look up what is behind us, and a
    // sanitizer's free() begins by setting itself up, in the middle of that.
    if (!block) return;
    auto* real = real_free.known();
    if (__builtin_expect(real && !homing::own_arena.spans(block) && !among_noted(block), 1))
        return real(block);
    free_slowly(block, caller());
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
    heap_threshold.store(bytes, std::memory_order_relaxed);
    const std::size_t counted = small ? std::min(bytes, BlockCover::smallest_block) : bytes;
    count_threshold.store(counted, std::memory_order_relaxed);
    // The C library's rounds up by less than two words; to ask it about others would cost a cache miss.
    const bool of_library = c_library.contains(reinterpret_cast<Address>(next_definition("malloc")));
    const std::size_t rounding = of_library ? 3 * sizeof(std::size_t) : counted / 8;
    least_asked.store(small ? counted - rounding : counted, std::memory_order_relaxed);
}

int origin_of(Address from, Address* origin) noexcept {
    Frames frames{origin, 0, from};
    const int saved = errno;
    _Unwind_Backtrace(collect, &frames);
    errno = saved;
    return frames.count;
}

bool notes_blocks_of(std::size_t bytes) noexcept {
    return bytes >= heap_threshold.load(std::memory_order_relaxed);
}

MappingLog::Owner owner_of_mappings(Address code) noexcept {
    if (!allocator.contains(code)) return MappingLog::Owner::program;
    return allocator_is_first ? MappingLog::Owner::unseen : MappingLog::Owner::hooked;
}

void know_c_library() noexcept {
    // One of its functions that no hook has taken the place of, nor a loader chooses at run time.
    Range code{reinterpret_cast<Address>(next_definition("gnu_get_libc_version")), 0};
    if (code.begin && ::dl_iterate_phdr(find_code, &code)) c_library = code;
    code = {reinterpret_cast<Address>(next_definition("__tls_get_addr")), 0};
    if (code.begin && ::dl_iterate_phdr(find_code, &code)) loader = code;
    const void* first = ::dlsym(RTLD_DEFAULT, "calloc");
    loader_asks_us = loader.bytes() > 0 && ::dl_iterate_phdr(is_ours, &first);
    first = ::dlsym(RTLD_DEFAULT, "malloc");
    allocator_is_first = !same_object(first, reinterpret_cast<const void*>(&find_code));
    if (!allocator_is_first) first = next_definition("malloc");
    code = {reinterpret_cast<Address>(first), 0};
    if (code.begin && !c_library.contains(code.begin) && ::dl_iterate_phdr(find_code, &code))
        allocator = code;
}

bool loader_uses_our_allocator() noexcept { return loader_asks_us; }

} // namespace homing::hooks
