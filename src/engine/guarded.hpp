// How the engine works at an event: alone, and without any harm to the program.
#pragma once

#include "base/floating_point.hpp"
#include "base/invariant.hpp"
#include "base/uncancelled.hpp"
#include "engine/engine.hpp"

#include <mutex>

namespace homing {

/// Work at a boundary: timed, never throwing into the program. Running out of memory is a reason to step
/// aside.
template <class Work> void Engine::guarded(Work&& work) noexcept {
    const Uncancelled uncancelled;
    const OwnFloatingPoint own;
    // The child of a fork does not wait for a thread that it does not have.
    if (finished_.load(std::memory_order_seq_cst)) return;
    const std::lock_guard turn(turn_);
    busy_.store(true, std::memory_order_seq_cst);
    if (!finished_.load(std::memory_order_seq_cst)) {
        try {
            work();
        } catch (const InvariantBroken& broken) {
            step_aside(std::string("a defect of homing (") + broken.what() + ")");
        } catch (...) {
            step_aside("out of memory inside homing");
        }
    }
    busy_.store(false, std::memory_order_seq_cst);
}

} // namespace homing
