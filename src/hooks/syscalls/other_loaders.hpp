// Programs that homing's library cannot be preloaded into: those of another loader (musl's refuses to start
// them, with status 127) or of another kind of processor (glibc's says so on stderr). Where the program
// starts one of these, homing's entry leaves the LD_PRELOAD that it gets. (What `homing run` itself starts,
// the launcher looks at.)
//
// Called between vfork and exec: no allocation, and memory of the stack only.
#pragma once

#include "hooks/export.hpp"

#include <alloca.h>
#include <cstddef>
#include <cstring>

namespace homing::hooks {

/// May the library not come into this program? `folder`: where a relative path begins (AT_FDCWD).
bool has_other_loader(int folder, const char* path) noexcept;
/// The same of one that is looked for in PATH, where it has no slash.
bool has_other_loader_in_path(const char* file) noexcept;
bool has_other_loader(int file) noexcept;

/// LD_PRELOAD's value in an environment; null where homing's library is not in it, or no call may be made to
/// look at a program.
const char* preload_with_ours(char* const* names) noexcept;
/// NAME=VALUE for what is left of the value. `to` has room for "LD_PRELOAD=" and the value. False: nothing is
/// left.
bool write_preload_without_ours(const char* value, char* to) noexcept;

/// work(environment): `names`, without homing's library where is_other() is true.
template <class IsOther, class Work>
auto with_environment(IsOther&& is_other, char* const* names, Work&& work) {
    const char* const value = is_relocated() ? preload_with_ours(names) : nullptr;
    if (!value || !is_other()) return work(names);
    constexpr std::size_t name_bytes = sizeof "LD_PRELOAD=";
    std::size_t count = 0;
    while (names[count])
        ++count;
    auto** const fresh = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
    auto* const text = static_cast<char*>(alloca(name_bytes + std::strlen(value)));
    const bool is_left = write_preload_without_ours(value, text);
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_it = names[i] + (name_bytes - 1) == value;
        if (is_it && !is_left) continue;
        fresh[at++] = is_it ? text : names[i];
    }
    fresh[at] = nullptr;
    return work(static_cast<char* const*>(fresh));
}

} // namespace homing::hooks
