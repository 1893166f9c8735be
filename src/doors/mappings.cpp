// The mappings door: homing watches no mapping that the program makes itself, but the program may unmap,
// move, replace or protect memory in which an area lies (a custom allocator on top of a watched block).
#include "areas/named.hpp"
#include "base/raw_calls.hpp"
#include "doors/export.hpp"
#include "doors/heap.hpp"
#include "mechanisms/simulation.hpp"
#include "references/windows.hpp"

#include <cerrno>
#include <cstdarg>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

namespace homing::doors {
namespace {

using MapFunction = void*(void*, std::size_t, int, int, int, off_t);

constinit thread_local bool looking_up = false;

/// A new mapping, perhaps in place of others. A program's own allocator maps memory, too, and may be called
/// by the look-up of the function behind us.
void* map(Real<MapFunction>& real, void* address, std::size_t bytes, int protection, int flags, int file,
          off_t offset) noexcept {
    if (!is_relocated()) return early(real, address, bytes, protection, flags, file, offset);
    if (flags & MAP_FIXED) memory_changes(address, bytes);
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

/// A segment of System V is about to take the place of what is there.
void segment_comes(int segment, const void* address) noexcept {
    struct shmid_ds about{};
    if (raw::call(SYS_shmctl, segment, IPC_STAT, &about) == 0)
        memory_changes(const_cast<void*>(address), about.shm_segsz);
}

} // namespace

void memory_changes(void* address, std::size_t bytes) noexcept {
    Windows* windows = active_windows.load(std::memory_order_acquire);
    if (__builtin_expect(windows == nullptr, 1)) return;
    const Address begin = reinterpret_cast<Address>(address);
    // The whole range and not only what is armed: the program will set protections of its own there.
    windows->release({begin, begin + bytes});
    windows->exclude_if_watched(pages_of({begin, begin + bytes}));
}

void memory_changes_by(long number, const long* arguments) noexcept {
    const auto memory = [arguments](int first) {
        return memory_changes(reinterpret_cast<void*>(arguments[first]),
                              static_cast<std::size_t>(arguments[first == 0 ? 1 : 2]));
    };
    switch (number) {
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_pkey_mprotect:
    case SYS_madvise:
    case SYS_remap_file_pages:
        return memory(0);
    case SYS_mmap:
        if (arguments[3] & MAP_FIXED) memory(0);
        return;
    case SYS_mremap:
        memory(0);
        if (arguments[3] & MREMAP_FIXED) memory(4);
        return;
    case SYS_shmat:
        if (arguments[1] && arguments[2] & SHM_REMAP)
            segment_comes(static_cast<int>(arguments[0]), reinterpret_cast<const void*>(arguments[1]));
        return;
    default:
        return;
    }
}

} // namespace homing::doors

using namespace homing::doors;

extern "C" {

HOMING_EXPORT int munmap(void* address, std::size_t bytes) noexcept {
    static constinit Real<int(void*, std::size_t)> real{"munmap"};
    if (!real.is_ready()) return early(real, address, bytes);
    homing::doors::memory_changes(address, bytes);
    homing::end_named_areas(homing::range_of(address, bytes));
    const int result = real(address, bytes);
    if (result == 0 && homing::simulation()) homing::simulation()->unmapped(homing::range_of(address, bytes));
    return result;
}

HOMING_EXPORT void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                         off_t offset) noexcept {
    static constinit Real<MapFunction> real{"mmap"};
    return map(real, address, bytes, protection, flags, file, offset);
}
HOMING_EXPORT void* mmap64(void* address, std::size_t bytes, int protection, int flags, int file,
                           off64_t offset) noexcept {
    static constinit Real<MapFunction> real{"mmap64"};
    return map(real, address, bytes, protection, flags, file, offset);
}

HOMING_EXPORT void* shmat(int segment, const void* address, int flags) noexcept {
    static constinit Real<void*(int, const void*, int)> real{"shmat"};
    if (!real.is_ready()) return early(real, segment, address, flags);
    if (address && flags & SHM_REMAP) homing::doors::segment_comes(segment, address);
    return real(segment, address, flags);
}

HOMING_EXPORT int pkey_mprotect(void* address, std::size_t bytes, int protection, int key) noexcept {
    static constinit Real<int(void*, std::size_t, int, int)> real{"pkey_mprotect"};
    if (!real.is_ready()) return early(real, address, bytes, protection, key);
    homing::doors::memory_changes(address, bytes);
    return real(address, bytes, protection, key);
}

HOMING_EXPORT int mprotect(void* address, std::size_t bytes, int protection) noexcept {
    static constinit Real<int(void*, std::size_t, int)> real{"mprotect"};
    if (!real.is_ready()) return early(real, address, bytes, protection);
    homing::doors::memory_changes(address, bytes);
    return real(address, bytes, protection);
}

HOMING_EXPORT int madvise(void* address, std::size_t bytes, int advice) noexcept {
    static constinit Real<int(void*, std::size_t, int)> real{"madvise"};
    if (!real.is_ready()) return early(real, address, bytes, advice);
    homing::doors::memory_changes(address, bytes);
    const int result = real(address, bytes, advice);
    if (result == 0 && advice == MADV_DONTNEED && homing::simulation())
        homing::simulation()->unmapped(homing::range_of(address, bytes));
    return result;
}

HOMING_EXPORT void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
    static constinit Real<void*(void*, std::size_t, std::size_t, int, void*)> real{"mremap"};
    va_list arguments;
    va_start(arguments, flags);
    void* wanted = flags & MREMAP_FIXED ? va_arg(arguments, void*) : nullptr;
    va_end(arguments);
    if (!real.is_ready()) return early(real, address, bytes, new_bytes, flags, wanted);
    homing::doors::memory_changes(address, bytes);
    if (flags & MREMAP_FIXED) homing::doors::memory_changes(wanted, new_bytes);
    void* fresh = real(address, bytes, new_bytes, flags, wanted);
    if (fresh != MAP_FAILED && (fresh != address || new_bytes < bytes))
        homing::end_named_areas(homing::range_of(address, bytes));
    if (fresh != MAP_FAILED && homing::simulation())
        homing::simulation()->remapped(homing::range_of(address, bytes), homing::range_of(fresh, new_bytes));
    return fresh;
}

} // extern "C"
