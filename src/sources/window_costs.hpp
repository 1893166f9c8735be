// What windows cost on this machine: tried on pages of our own.
#pragma once

#include "sources/window_plan.hpp"
#include "sources/windows.hpp"

namespace homing {

/// Tells the plan what arming an isolated page takes, and a fault. Whether or not the handler is ours
/// (`handled`; it is not in the unit tests), arming can be tried. `slowness`: see WindowPlan::calibrate.
void measure_windows(Kernel& kernel, Windows& windows, bool handled, double slowness, WindowPlan& plan);

} // namespace homing
