// Observes the recorded iteration: what the source sees goes into the trace of the phase that runs. Where the
// source does not count misses, windows take all pages of the hot areas away at each region, so that whoever
// touches a page first in a region is one reference of it.
#pragma once

#include "phases/recording.hpp"

#include <memory>

namespace homing::replay {

/// `recording`: of the phase that runs, at the time of the call; null: none does.
std::unique_ptr<Mechanism> make_recorder(std::function<Recording*()> recording);

} // namespace homing::replay
