// Single pages, each to a node of its own, by one system call: for plans that were made page by page. As the
// mover it believes nothing: what is not on its target after a second query was not moved.
#pragma once

#include "kernel/kernel.hpp"
#include "kernel/mover.hpp"

#include <functional>
#include <span>

namespace homing {

struct PageMove {
    void* page = nullptr;    ///< first base page of the granule that moves with it
    int target = -1;         ///< node (of the operating system)
    int expected = -1;       ///< it is left alone unless it lies there; -1: wherever it is
    std::uint64_t pages = 1; ///< base pages of the granule
    // What became of it.
    int before = -1;    ///< node where it was found; below 0: it does not exist, or is not known
    bool tried = false; ///< it was elsewhere, and as expected
    bool moved = false; ///< verified
    int error = 0;      ///< why it was not

    bool refused() const noexcept { return tried && !moved; }
};

/// One query, one call that moves, one query for each of the batches that one call should not exceed. Adds to
/// `result`, in base pages. `prepare` is called before pages that are armed for hint faults are touched to
/// see where they are (Kernel::reveal).
void move_each(Kernel& kernel, std::span<PageMove> moves, Moves& result,
               const std::function<void()>& prepare = {});

} // namespace homing
