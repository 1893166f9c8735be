// What the kernel knows of the signals of all threads of the process.
#pragma once

#include "hooks/signals/masks.hpp"

namespace homing::hooks {

struct ThreadSignals {
    long found = 0;         ///< a thread whose mask is such a one, or 0
    Mask caught = ~Mask{0}; ///< signals that have a handler in the process, as far as is known
};

/// [driver] Looks for a thread whose mask is such a one. A file for each thread is read, until one is found.
ThreadSignals look_at_threads(bool (*fits)(Mask)) noexcept;

constexpr bool blocks_faults(Mask mask) noexcept { return (mask & segv) != 0; }
/// Before masks are translated: the program itself blocks what stands in for SIGSEGV later.
constexpr bool blocks_stand_in_only(Mask mask) noexcept { return (mask & (segv | stand_in)) == stand_in; }

} // namespace homing::hooks
