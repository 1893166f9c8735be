// Temporaries: blocks that one place in the code allocates and frees in every iteration. Who clears them
// decides where their pages come into being, and to move these would be paid for by an iteration. What is
// believed of the ones before says where the next ones belong as they are allocated
// (areas/allocation_plans.hpp).
#include "areas/allocation_plans.hpp"
#include "areas/temporaries.hpp"
#include "engine/engine.hpp"
#include "machine/simulation.hpp"
#include "model/tuning.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <linux/mempolicy.h>

namespace homing {

using namespace model::tuning;

void Engine::plan_allocations() {
    if (!mechanism_->places_allocations() || simulation() || watch_.returned().empty()) return;
    const double now = record::now();
    for (WatchedArea* area : watch_.returned()) {
        if (area->group.entry.kind != AreaKind::heap_block || area->left_alone()) continue;
        // Of a block that is used in part its pages have other numbers.
        if (!area->learnt.is_of(area->granules) || now < area->next_plan_look) continue;
        const bool astray = is_astray(mover_, *area, iteration_);
        area->plan_wait =
            astray ? short_time : std::clamp(growth * area->plan_wait, short_time, scan_interval);
        area->next_plan_look = now + area->plan_wait;
        if (!astray) continue;
        // What the user has set (numactl) stays in force. The policy of a plan keeps the kernel's balancer
        // away, too.
        MemoryPolicy task;
        if (kernel_.task_policy(task) != 0 || task.plain_mode() != MPOL_DEFAULT) return;
        allocation_plans().publish(place_and_size(area->group.entry), runs_of(*area, nodes_), kernel_);
    }
}

} // namespace homing
