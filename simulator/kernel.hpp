// The kernel's answers about the memory of the described machine: the contract of src/kernel/kernel.hpp over
// the model's page table, so that the engine's mechanisms work there unchanged.
#pragma once

#include "kernel/kernel.hpp"
#include "sources/references.hpp"

#include <atomic>

namespace homing::simulator {

/// What was asked for, for the model of time.
struct MoveTotals {
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> pages{0};
};
MoveTotals& move_totals() noexcept;

Kernel& model_kernel() noexcept;

/// Filters must be forgotten before other threads run on: pages were protected.
bool take_protections() noexcept;

/// The exact source of references: misses of each page by node since the last look.
ReferenceSource* make_model_source();

} // namespace homing::simulator
