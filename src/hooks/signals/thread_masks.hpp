// The signals that the kernel blocks, of all threads of the process.
#pragma once

#include "hooks/signals/masks.hpp"

namespace homing::hooks {

/// [driver] A thread whose mask is such a one, or 0. A file for each thread is read.
long find_thread(bool (*fits)(Mask)) noexcept;

constexpr bool blocks_faults(Mask mask) noexcept { return (mask & segv) != 0; }
/// Before masks are translated: the program itself blocks what stands in for SIGSEGV later.
constexpr bool blocks_stand_in_only(Mask mask) noexcept { return (mask & (segv | stand_in)) == stand_in; }

} // namespace homing::hooks
