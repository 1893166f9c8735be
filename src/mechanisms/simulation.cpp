#include "mechanisms/simulation.hpp"

#include <atomic>

namespace homing {
namespace {
constinit std::atomic<Simulation*> the_simulation{nullptr};
}

Simulation* simulation() noexcept { return the_simulation.load(std::memory_order_acquire); }
void set_simulation(Simulation* simulation) noexcept {
    the_simulation.store(simulation, std::memory_order_release);
}

} // namespace homing
