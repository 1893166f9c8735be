#include "hooks/shadowed.hpp"

#include "hooks/export.hpp"
#include "hooks/loaded_objects.hpp"
#include "hooks/syscalls/own_calls.hpp"

#include <cstring>

namespace homing::hooks {
namespace {

/// A row of the table that HOMING_STUB makes.
struct Stub {
    const char* name;
    void** past; ///< where calls are led; null: to the hook
};

extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const Stub __start_homing_stubs[];
[[gnu::weak, gnu::visibility("hidden")]] extern const Stub __stop_homing_stubs[];
}

/// Can the object call the C library's function of this name, which is hidden behind its own? Those that do
/// so (they count calls, or make them elsewhere) look it up, make the system call themselves, or know another
/// name of it.
bool can_pass_on(const link_map& object, const Definitions& definitions, const char* name) noexcept {
    for (const char* way : {"dlsym", "dlvsym", "syscall"})
        if (definitions.refers_to(way)) return true;
    for (const char* before : {"__", "__libc_", "_IO_"}) {
        char other[64];
        const std::size_t length = own_length(before);
        if (length + own_length(name) >= sizeof other) return true;
        std::memcpy(other, before, length);
        std::memcpy(other + length, name, own_length(name) + 1);
        if (definitions.refers_to(other)) return true;
    }
    int count = 0;
    const auto* segments = segments_of(object.l_addr, count);
    for (int i = 0; i < count; ++i) {
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X)) continue;
        const auto* code = reinterpret_cast<const unsigned char*>(object.l_addr + segments[i].p_vaddr);
        if (!(segments[i].p_flags & PF_R) || calls_kernel({code, segments[i].p_filesz})) return true;
    }
    return false;
}

} // namespace

void find_shadowed() noexcept {
    const CLibrary c_library;
    const link_map* own = own_object();
    for (const Stub* stub = __start_homing_stubs; stub < __stop_homing_stubs; ++stub) {
        const auto behind = reinterpret_cast<Address>(next_definition(stub->name));
        if (!behind || c_library.holds(behind) || !c_library.find(stub->name, nullptr)) continue;
        for (const link_map* object = own ? own->l_next : nullptr; object; object = object->l_next) {
            if (!contains(*object, behind)) continue;
            const Definitions definitions(*object);
            if (!can_pass_on(*object, definitions, stub->name)) *stub->past = reinterpret_cast<void*>(behind);
            break;
        }
    }
}

bool is_shadowed(const char* name) noexcept {
    for (const Stub* stub = __start_homing_stubs; stub < __stop_homing_stubs; ++stub)
        if (*stub->past && own_equal(stub->name, name)) return true;
    return false;
}

} // namespace homing::hooks
