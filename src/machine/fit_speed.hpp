// How fast learning is on this machine.
#pragma once

namespace homing {

/// Processor seconds that a fit of eight touches by a team of four takes here, the least of some: how fast
/// floating point is, compared with the machines on which amounts of time were chosen.
double seconds_of_fit();

} // namespace homing
