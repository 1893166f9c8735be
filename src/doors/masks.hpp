// Signal masks: what the program blocks of SIGSEGV, and what the kernel does.
//
// A thread that blocks SIGSEGV dies of a window's fault, so the kernel never gets to see SIGSEGV in a mask of
// the program's. A signal that nobody sends stands in for it there: the kernel keeps it for us, by thread,
// over siglongjmp(), setcontext() and the handlers of other signals, and hands it on to new threads.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstring>

namespace homing::doors {

/// A mask as the kernel has it.
using Mask = std::uint64_t;

constexpr Mask mask_of(int signal) noexcept { return Mask{1} << (signal - 1); }
constexpr Mask segv = mask_of(SIGSEGV);
constexpr Mask stand_in = mask_of(SIGSTKFLT); ///< no kernel sends it

inline Mask get_mask(const sigset_t& set) noexcept {
    Mask mask = 0;
    std::memcpy(&mask, &set, sizeof mask);
    return mask;
}
/// Only what the kernel knows of a set is written.
inline void put_mask(sigset_t& set, Mask mask) noexcept { std::memcpy(&set, &mask, sizeof mask); }

/// What the kernel gets for a mask of the program's.
constexpr Mask for_kernel(Mask program) noexcept {
    return (program & ~(segv | stand_in)) | (program & segv ? stand_in : 0);
}
/// What the program sees of a mask of the kernel's.
constexpr Mask for_program(Mask kernel) noexcept { return kernel & stand_in ? kernel | segv : kernel; }

/// Are masks translated in this process? From its start, unless homing does nothing in it.
bool translates_masks() noexcept;
void leave_masks_alone() noexcept;

} // namespace homing::doors
