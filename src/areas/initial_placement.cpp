#include "areas/initial_placement.hpp"

#include "base/options.hpp"
#include "kernel/initial_nodes.hpp"
#include "machine/simulation.hpp"

#include <algorithm>
#include <limits>
#include <linux/mempolicy.h>

namespace homing {
namespace {

/// So often what was populated since is placed at random: in the iteration in which an area comes, the next
/// one, two later, then four later, ...
constexpr int most_looks = 12;
/// Granules whose homes are asked for at once.
constexpr std::uint64_t chunk = std::uint64_t{1} << 16;
constexpr double no_deadline = std::numeric_limits<double>::infinity();

} // namespace

InitialPlacement::InitialPlacement(Kernel& kernel, const NodeMap& nodes, Mover& mover, NodeSet targets)
    : kernel_(kernel), nodes_(nodes), mover_(mover), targets_(targets),
      all_(policy::all_nodes(nodes.count())), wanted_(option_text(Option::initial)),
      // A simulated machine places every page so when it is first touched.
      idle_(wanted_ == "first-touch" || simulation()), random_(wanted_ == "random"),
      seed_(static_cast<std::uint64_t>(option_number(Option::seed))) {}

bool InitialPlacement::is_due(const WatchedArea& area, std::uint32_t iteration) const noexcept {
    if (area.initial_looks == 0) return true;
    return random_ && !area.sent_home && area.initial_looks < most_looks && iteration >= area.initial_next;
}

void InitialPlacement::place(WatchList& watch, std::uint32_t iteration) {
    if (idle_) return;
    for (const auto& area : watch.areas()) {
        if (!is_due(*area, iteration)) continue;
        if (area->initial_looks == 0) bind(*area);
        area->initial_next = iteration + (1U << area->initial_looks);
        ++area->initial_looks;
        send(*area, iteration);
    }
}

/// Pages to come.
void InitialPlacement::bind(const WatchedArea& area) {
    if (random_) return;
    MemoryPolicy policy{MPOL_INTERLEAVE, targets_};
    if (wanted_ == "single-node") policy = {MPOL_PREFERRED, NodeSet{std::uint64_t{1} << nodes_.system(0)}};
    kernel_.bind(area.range, policy);
}

policy::Node InitialPlacement::node_of(const WatchedArea& area, std::uint64_t granule) const noexcept {
    if (wanted_ == "round-robin") return policy::round_robin_node(granule, all_);
    if (random_) return policy::random_node(granule, all_, seed_ + area.id);
    return 0;
}

/// What is populated, and was not dealt out before.
void InitialPlacement::send(WatchedArea& area, std::uint32_t iteration) {
    std::vector<std::uint64_t> granules;
    std::vector<std::vector<std::uint64_t>> lists(static_cast<std::size_t>(nodes_.count()));
    MoveResult result;
    bool all_dealt = true;
    for (std::uint64_t first = 0; first < area.granules; first += chunk) {
        granules.clear();
        for (std::uint64_t granule = first; granule < std::min(area.granules, first + chunk); ++granule)
            granules.push_back(granule);
        if (random_) all_dealt &= take_populated(area, granules);
        for (auto& list : lists)
            list.clear();
        for (const std::uint64_t granule : granules)
            lists[static_cast<std::size_t>(node_of(area, granule))].push_back(granule);
        for (std::size_t node = 0; node < lists.size(); ++node)
            mover_.send(area, lists[node], static_cast<int>(node), all_, iteration, no_deadline, result);
    }
    if (random_ && all_dealt) area.initial_looks = most_looks;
    if (area.initial_looks == most_looks) area.initially_dealt = {};
}

/// Leave of these granules only those that are to be dealt out now. Returns whether none is left for later.
bool InitialPlacement::take_populated(WatchedArea& area, std::vector<std::uint64_t>& granules) {
    std::vector<bool>& dealt = area.initially_dealt;
    dealt.resize(area.granules);
    std::erase_if(granules, [&](std::uint64_t granule) { return dealt[granule]; });
    std::vector<int> homes;
    mover_.homes(area, granules, homes);
    std::size_t count = 0;
    for (std::size_t i = 0; i < granules.size(); ++i) {
        if (homes[i] < 0) continue;
        dealt[granules[i]] = true;
        granules[count++] = granules[i];
    }
    const bool all = count == granules.size();
    granules.resize(count);
    return all;
}

} // namespace homing
