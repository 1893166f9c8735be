// The mappings hook: anonymous memory that the program maps itself is watched like blocks of the allocator,
// and what it unmaps, moves, replaces or protects may be watched (a custom allocator on top of a block, say).
#include "areas/mapped.hpp"
#include "areas/named.hpp"
#include "base/inside.hpp"
#include "base/raw_calls.hpp"
#include "engine/engine.hpp"
#include "hooks/allocator/heap.hpp"
#include "hooks/export.hpp"
#include "machine/simulation.hpp"
#include "sources/windows.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

namespace homing::hooks {
namespace {

using MapFunction = void*(void*, std::size_t, int, int, int, off_t);

constinit thread_local bool looking_up = false;

/// Memory that the program has mapped: arrays, or what an allocator deals out. Not stacks, which the kernel
/// writes to, nor huge pages of a pool.
void note_mapping(void* address, std::size_t bytes, Address from) noexcept {
    const Inside inside;
    MappingLog::Entry entry;
    entry.range = pages_of(range_of(address, bytes));
    entry.event = MappingLog::Event::mapped;
    entry.owner = owner_of_mappings(from);
    origin_of(from, entry.origin);
    mapping_log().add(entry);
}

/// Memory that was told to go is there now.
void memory_moved(void* before, void* address, std::size_t bytes) noexcept {
    const Address from = reinterpret_cast<Address>(before);
    if (!mapping_log().among_mapped({from, from + 1})) return;
    MappingLog::Entry entry;
    entry.range = pages_of(range_of(address, bytes));
    entry.event = MappingLog::Event::moved;
    entry.from = from;
    mapping_log().add(entry);
}

/// No policy of homing's lies on memory that is being moved or grown.
class WithoutPolicies {
  public:
    explicit WithoutPolicies(Range range) noexcept {
        if (Engine* running = engine(); running && running->policies().before_remap(pages_of(range)))
            held_ = &running->policies();
    }
    ~WithoutPolicies() {
        if (held_) held_->after_remap();
    }
    WithoutPolicies(const WithoutPolicies&) = delete;
    WithoutPolicies& operator=(const WithoutPolicies&) = delete;

  private:
    PolicyKeeper* held_ = nullptr;
};

bool is_noted(std::size_t bytes, int protection, int flags) noexcept {
    constexpr int kind = MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS;
    constexpr int others = MAP_HUGETLB | MAP_STACK | MAP_GROWSDOWN;
    return notes_blocks_of(bytes) && (flags & kind) == (MAP_PRIVATE | MAP_ANONYMOUS) && !(flags & others) &&
           protection == (PROT_READ | PROT_WRITE) && !is_inside() && !simulation();
}

void* map_by(Real<MapFunction>& real, void* address, std::size_t bytes, int protection, int flags, int file,
             off_t offset) noexcept {
    MapFunction* function = real.known();
    if (!function && !looking_up) {
        looking_up = true;
        function = real.get();
        looking_up = false;
    }
    if (function) return function(address, bytes, protection, flags, file, offset);
    const long result = raw::call(SYS_mmap, address, bytes, protection, flags, file, offset);
    if (result >= 0 || result <= -4096) return reinterpret_cast<void*>(result);
    errno = static_cast<int>(-result);
    return MAP_FAILED;
}

/// A new mapping, perhaps in place of others. A program's own allocator maps memory, too, and may be called
/// by the look-up of the function behind us. `from`: who called.
void* map(Real<MapFunction>& real, void* address, std::size_t bytes, int protection, int flags, int file,
          off_t offset, Address from) noexcept {
    if (!is_relocated()) return early(real, address, bytes, protection, flags, file, offset);
    if (flags & MAP_FIXED) memory_changes(address, bytes, false);
    void* const result = map_by(real, address, bytes, protection, flags, file, offset);
    if (result != MAP_FAILED && is_noted(bytes, protection, flags)) note_mapping(result, bytes, from);
    return result;
}

/// A segment of System V is about to take the place of what is there.
void segment_comes(int segment, const void* address) noexcept {
    struct shmid_ds about{};
    if (raw::call(SYS_shmctl, segment, IPC_STAT, &about) == 0)
        memory_changes(const_cast<void*>(address), about.shm_segsz, false);
}

// Advice of kernels that are newer than some C library's headers.
constexpr int populate_read = 22, populate_write = 23, collapse = 25;

/// Advice by which the memory stays what it is, though perhaps empty, is no change: allocators give it all
/// the time. What it needs the right to access for (to populate, to collapse) it has, as the call has its
/// memory in flight. Other advice may make the memory something else, or forbid to access it.
void memory_is_advised(void* address, std::size_t bytes, int advice) noexcept {
    switch (advice) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_KEEPONFORK:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case populate_read:
    case populate_write:
    case collapse:
        return;
    default:
        return memory_changes(address, bytes, true);
    }
}

} // namespace

void memory_changes(void* address, std::size_t bytes, bool stays) noexcept {
    MappingLog::Entry entry;
    entry.range = pages_of(range_of(address, bytes));
    entry.stays = stays;
    // Where the program has mapped memory itself the engine sees what it is that changes (WatchList), and
    // opens no window before.
    bool told = false;
    if (!entry.range.empty() && mapping_log().among_mapped(entry.range)) {
        entry.newest_block = area_registry().newest();
        told = mapping_log().add(entry);
    }
    Windows* windows = active_windows.load(std::memory_order_seq_cst);
    if (__builtin_expect(windows == nullptr, 1)) return;
    // The whole range and not only what is armed: the program will set protections of its own there.
    windows->release(range_of(address, bytes));
    if (!told) windows->exclude_if_watched(entry.range);
}

void memory_changes_by(long number, const long* arguments) noexcept {
    void* const first = reinterpret_cast<void*>(arguments[0]);
    const auto bytes = static_cast<std::size_t>(arguments[1]);
    switch (number) {
    case SYS_munmap:
        return memory_changes(first, bytes, false);
    case SYS_mprotect:
    case SYS_pkey_mprotect:
    case SYS_remap_file_pages:
        return memory_changes(first, bytes, true);
    case SYS_madvise:
        return memory_is_advised(first, bytes, static_cast<int>(arguments[2]));
    case SYS_mmap:
        if (arguments[3] & MAP_FIXED) memory_changes(first, bytes, false);
        return;
    case SYS_mremap: {
        memory_changes(first, bytes, false);
        const WithoutPolicies before_the_call(range_of(first, bytes));
        if (arguments[3] & MREMAP_FIXED)
            memory_changes(reinterpret_cast<void*>(arguments[4]), static_cast<std::size_t>(arguments[2]),
                           false);
        return;
    }
    case SYS_shmat:
        if (arguments[1] && arguments[2] & SHM_REMAP)
            segment_comes(static_cast<int>(arguments[0]), reinterpret_cast<const void*>(arguments[1]));
        return;
    default:
        return;
    }
}

} // namespace homing::hooks

using namespace homing::hooks;
using homing::Address;

extern "C" {

HOMING_EXPORT int munmap(void* address, std::size_t bytes) noexcept {
    static constinit Real<int(void*, std::size_t)> real{"munmap"};
    if (!real.is_ready()) return early(real, address, bytes);
    homing::hooks::memory_changes(address, bytes, false);
    homing::end_named_areas(homing::range_of(address, bytes));
    const int result = real(address, bytes);
    if (result == 0 && homing::simulation()) homing::simulation()->unmapped(homing::range_of(address, bytes));
    return result;
}

HOMING_EXPORT void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                         off_t offset) noexcept {
    static constinit Real<MapFunction> real{"mmap"};
    return map(real, address, bytes, protection, flags, file, offset,
               reinterpret_cast<Address>(__builtin_extract_return_addr(__builtin_return_address(0))));
}
HOMING_EXPORT void* mmap64(void* address, std::size_t bytes, int protection, int flags, int file,
                           off64_t offset) noexcept {
    static constinit Real<MapFunction> real{"mmap64"};
    return map(real, address, bytes, protection, flags, file, offset,
               reinterpret_cast<Address>(__builtin_extract_return_addr(__builtin_return_address(0))));
}

HOMING_EXPORT void* shmat(int segment, const void* address, int flags) noexcept {
    static constinit Real<void*(int, const void*, int)> real{"shmat"};
    if (!real.is_ready()) return early(real, segment, address, flags);
    if (address && flags & SHM_REMAP) homing::hooks::segment_comes(segment, address);
    return real(segment, address, flags);
}

HOMING_EXPORT int pkey_mprotect(void* address, std::size_t bytes, int protection, int key) noexcept {
    static constinit Real<int(void*, std::size_t, int, int)> real{"pkey_mprotect"};
    if (!real.is_ready()) return early(real, address, bytes, protection, key);
    homing::hooks::memory_changes(address, bytes, true);
    return real(address, bytes, protection, key);
}

HOMING_EXPORT int mprotect(void* address, std::size_t bytes, int protection) noexcept {
    static constinit Real<int(void*, std::size_t, int)> real{"mprotect"};
    if (!real.is_ready()) return early(real, address, bytes, protection);
    homing::hooks::memory_changes(address, bytes, true);
    return real(address, bytes, protection);
}

HOMING_EXPORT int madvise(void* address, std::size_t bytes, int advice) noexcept {
    static constinit Real<int(void*, std::size_t, int)> real{"madvise"};
    if (!real.is_ready()) return early(real, address, bytes, advice);
    homing::hooks::memory_is_advised(address, bytes, advice);
    homing::InFlight call;
    call.add(homing::pages_of(homing::range_of(address, bytes)));
    homing::Windows::begin(call);
    const int result = real(address, bytes, advice);
    call.end();
    if (result == 0 && advice == MADV_DONTNEED && homing::simulation())
        homing::simulation()->unmapped(homing::range_of(address, bytes));
    return result;
}

HOMING_EXPORT void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
    static constinit Real<void*(void*, std::size_t, std::size_t, int, void*)> real{"mremap"};
    va_list arguments;
    va_start(arguments, flags);
    constexpr int takes_address = MREMAP_FIXED | 4; // MREMAP_DONTUNMAP: a hint, as the kernel takes it
    void* wanted = flags & takes_address ? va_arg(arguments, void*) : nullptr;
    va_end(arguments);
    if (!real.is_ready()) return early(real, address, bytes, new_bytes, flags, wanted);
    homing::hooks::memory_changes(address, bytes, false);
    if (flags & MREMAP_FIXED) homing::hooks::memory_changes(wanted, new_bytes, false);
    void* fresh = MAP_FAILED;
    {
        const homing::hooks::WithoutPolicies none(homing::range_of(address, bytes));
        fresh = real(address, bytes, new_bytes, flags, wanted);
    }
    if (fresh != MAP_FAILED && (fresh != address || new_bytes < bytes))
        homing::end_named_areas(homing::range_of(address, bytes));
    if (fresh != MAP_FAILED && homing::simulation())
        homing::simulation()->remapped(homing::range_of(address, bytes), homing::range_of(fresh, new_bytes));
    const bool moved = fresh != MAP_FAILED;
    memory_moved(address, moved ? fresh : address, moved ? new_bytes : bytes);
    return fresh;
}

} // extern "C"
