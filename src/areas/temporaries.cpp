#include "areas/temporaries.hpp"

#include "base/random.hpp"
#include "model/tuning.hpp"
#include "model/verdict.hpp"

#include <algorithm>

namespace homing {
namespace {

using namespace model::tuning;

/// The node on which a page is likelier than not to belong, whoever touches it first; unknown_node: none.
model::Node certain_home(const model::Belief& belief, std::uint64_t page, model::Prospect& prospect) {
    belief.prospect(page, model::unknown_node, prospect);
    if (model::is_spread(prospect) || prospect.is_beyond) return model::unknown_node;
    const auto best = std::ranges::max_element(prospect.best);
    return *best >= least_lead ? static_cast<model::Node>(best - prospect.best.begin()) : model::unknown_node;
}

} // namespace

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

} // namespace homing
