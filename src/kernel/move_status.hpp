// What became of pages that move_pages(2) did not tell of.
#pragma once

#include "kernel/kernel.hpp"

#include <cerrno>
#include <span>

namespace homing {

/// The status of a page before the call, and after it where the call gave up before.
inline constexpr int not_attempted = -EAGAIN;

/// move_pages(2) works through runs of pages with one target; one that has a status of its own (it may not
/// move, or is there already) ends a run, too. When the call cannot migrate all of a run (or has no memory),
/// it gives up there: the run's pages and all later ones keep the status they had before the call. Finds out
/// what became of them: where they are, else the reason (in the failed run; error: the call's, 0: pages are
/// busy), else not_attempted (later ones).
void explain_moves(Kernel& kernel, std::span<void* const> pages, std::span<const int> targets,
                   std::span<int> status, int error) noexcept;

} // namespace homing
