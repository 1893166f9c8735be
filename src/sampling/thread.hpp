// The memory management thread of the sampling mechanism: wakes up at an interval, scans, and sleeps again.
#pragma once

#include "engine/engine.hpp"

namespace homing::sampling {

/// `--mechanism sampling`: from now on pages of this engine move by it, and the thread is there. Nothing with
/// another mechanism. once, in front of the first region.
void begin(Engine& engine) noexcept;
/// The process ends, or may make no system call any more: the thread has left, or will do no more.
void stop() noexcept;
/// In the child of a fork it is not there.
void abandon() noexcept;

} // namespace homing::sampling
