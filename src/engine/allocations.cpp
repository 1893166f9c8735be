// Temporaries: blocks that one place in the code allocates and frees in every iteration. Who clears them
// decides where their pages come into being, and to move these would be paid for by an iteration. What is
// believed of the ones before says where the next ones belong as they are allocated
// (areas/allocation_plans.hpp).
#include "areas/allocation_plans.hpp"
#include "engine/engine.hpp"
#include "engine/judgement.hpp"
#include "machine/simulation.hpp"
#include "model/tuning.hpp"
#include "model/verdict.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <linux/mempolicy.h>
#include <vector>

namespace homing {
namespace {

using namespace model::tuning;

/// The node on which a page is likelier than not to belong, whoever touches it first; unknown_node: none.
model::Node certain_home(const model::Belief& belief, std::uint64_t page, model::Prospect& prospect) {
    belief.prospect(page, model::unknown_node, prospect);
    if (model::is_spread(prospect)) return model::unknown_node;
    const auto best = std::ranges::max_element(prospect.best);
    return *best >= model::tuning::least_lead ? static_cast<model::Node>(best - prospect.best.begin())
                                              : model::unknown_node;
}

/// Does first touch put the pages of this temporary, whose memory is new, where they do not belong?
bool is_astray(Mover& mover, WatchedArea& area, std::uint32_t iteration) {
    const model::Belief& belief = *area.learnt.belief;
    const std::vector<std::uint64_t> granules = even_pages(area.granules, least_looks, iteration);
    std::vector<int> homes;
    mover.homes(area, granules, homes);
    std::size_t found = 0, astray = 0;
    model::Prospect prospect;
    for (std::size_t i = 0; i < granules.size(); ++i) {
        if (homes[i] < 0) continue;
        ++found;
        const model::Node home = certain_home(belief, granules[i], prospect);
        astray += home != model::unknown_node && home != homes[i];
    }
    return found >= std::min<std::size_t>(least_looks / 4, granules.size()) &&
           static_cast<double>(astray) >= news_share * static_cast<double>(found);
}

/// Where the pages of such a block belong, in runs; none where they are too short.
std::vector<AllocationPlans::Run> runs_of(const WatchedArea& area, const NodeMap& nodes) {
    const model::Belief& belief = *area.learnt.belief;
    std::vector<AllocationPlans::Run> runs;
    model::Prospect prospect;
    for (std::uint64_t page = 0; page < belief.pages();) {
        const std::uint64_t end = belief.stretch_end(page);
        const model::Node home = certain_home(belief, page, prospect);
        const int node = home == model::unknown_node ? -1 : nodes.system(home);
        const auto last =
            static_cast<std::uint32_t>((area.granule_range(end - 1).end - area.range.begin) / page_bytes());
        if (!runs.empty() && runs.back().node == node)
            runs.back().end = last;
        else
            runs.push_back({last, node});
        page = end;
    }
    if (runs.back().end < least_run_pages * runs.size()) runs.clear();
    if (std::ranges::all_of(runs, [](const auto& run) { return run.node < 0; })) runs.clear();
    return runs;
}

} // namespace

void Engine::plan_allocations() {
    if (!mechanism_->places_allocations() || simulation() || watch_.returned().empty()) return;
    const double now = record::now();
    for (WatchedArea* area : watch_.returned()) {
        if (area->group.entry.kind != AreaKind::heap_block || area->left_alone) continue;
        // Of a block that is used in part its pages have other numbers.
        if (!area->learnt.is_of(area->granules) || now < area->next_plan_look) continue;
        const bool astray = is_astray(mover_, *area, iteration_);
        area->plan_wait =
            astray ? short_time : std::clamp(growth * area->plan_wait, short_time, scan_interval);
        area->next_plan_look = now + area->plan_wait;
        if (!astray) continue;
        // What the user has set (numactl) stays in force, and what keeps the kernel's balancer away is set
        // elsewhere.
        MemoryPolicy task;
        if (kernel_.task_policy(task) != 0 || task.plain_mode() != MPOL_DEFAULT || kernel_balances()) return;
        allocation_plans().publish(place_and_size(area->group.entry), runs_of(*area, nodes_), kernel_);
    }
}

} // namespace homing
