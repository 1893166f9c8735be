// Migrate on next touch, what happens at the touch: in the handler of the signal the granule goes to the node
// of the thread that has touched it.
#pragma once

#include "kernel/kernel.hpp"
#include "sources/windows.hpp"

#include <cstdint>

namespace homing::sent_by_touches {

/// From now on what is touched in the windows goes there, by this kernel, and to these nodes alone. (It ends
/// with Windows::set_touch_action.)
void begin(Kernel& kernel, NodeSet targets, Windows& windows) noexcept;
/// [signal] Send a granule to the node that touches it.
void send_here(Range granule, int node) noexcept;
/// Pages that were on another node, and calls of the system, since this was asked before.
std::uint64_t take_pages() noexcept;
std::uint32_t take_calls() noexcept;

} // namespace homing::sent_by_touches
