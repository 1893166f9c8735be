#include "mechanisms/evidence.hpp"

#include <algorithm>
#include <cmath>

namespace homing {
namespace {

/// Support must be so many times what opposes it: the gain has to be worth the move.
constexpr double outweighs = 1.5;
/// A run is scattered when so many samples, and this share of it, lie elsewhere than where they are used: a
/// part of which nothing is known is no more right than the others then.
constexpr std::uint32_t scattered_samples = 3;
constexpr double scattered_share = 1.0 / 3;
/// Pages that leave no doubt, if they lie away from borders and nothing speaks against them.
constexpr std::uint32_t beyond_doubt = 4;
/// How far the halo of a neighbour may reach into a run, in parts of it (as in policy/ownership.cpp).
constexpr std::uint64_t halo_share = 8;

bool is_inside(const std::vector<policy::Run>& runs, std::size_t run, std::uint64_t page) {
    const policy::Run& here = runs[run];
    if (here.pattern != policy::Pattern::owned) return false;
    const std::uint64_t reach = std::max<std::uint64_t>(1, (here.end - here.first) / halo_share);
    // The ends of the area are no borders.
    const bool below = run == 0 || page - here.first >= reach;
    const bool above = run + 1 == runs.size() || here.end - page > reach;
    return below && above;
}

} // namespace

bool is_stray(const policy::Ownership& ownership, std::size_t run, std::uint64_t granule,
              std::span<const std::uint16_t> uses, policy::Node home) {
    if (!is_inside(ownership.runs(), run, granule)) return false;
    const policy::Node owner = ownership.runs()[run].node;
    const std::uint16_t by_owner = uses[static_cast<std::size_t>(owner)];
    return owner != home && by_owner > 0 && uses[static_cast<std::size_t>(home)] == 0 &&
           by_owner == *std::ranges::max_element(uses);
}

double granules_of_sample(const WatchedArea& area, std::size_t i, const policy::Run& run) {
    if (run.pattern == policy::Pattern::unknown) return 1;
    const policy::Samples& samples = area.telling;
    const std::uint64_t before = i > 0 ? samples.page(i - 1) : 0;
    const std::uint64_t after = i + 1 < samples.size() ? samples.page(i + 1) : area.granules;
    return std::max(1.0, static_cast<double>(area.there().count({before, after})) / 2);
}

Evidence::Evidence(const WatchedArea& area, std::span<const int> homes)
    : nodes_(static_cast<std::size_t>(area.telling.nodes())), counts_(area.ownership.runs().size() * nodes_),
      weights_(area.ownership.runs().size()), stray_(area.telling.size(), false) {
    const auto& runs = area.ownership.runs();
    std::vector<std::size_t> run_of(area.telling.size(), 0);
    std::size_t run = 0;
    for (std::size_t i = 0; i < area.telling.size() && !runs.empty(); ++i) {
        const std::uint64_t page = area.telling.page(i);
        while (run + 1 < runs.size() && runs[run].end <= page)
            ++run;
        run_of[i] = run;
        const policy::Pattern pattern = runs[run].pattern;
        if (homes[i] < 0 || (pattern != policy::Pattern::owned && pattern != policy::Pattern::cyclic))
            continue;
        const policy::Node owner = area.ownership.owner(page);
        if (owner < 0 || area.refused.left(page)) continue;
        const double weight = granules_of_sample(area, i, runs[run]);
        weights_[run] += weight;
        if (owner == homes[i]) continue;
        const auto uses = area.telling.counts(i);
        const std::uint32_t by_owner = uses[static_cast<std::size_t>(owner)];
        const std::uint32_t from_home = uses[static_cast<std::size_t>(homes[i])];
        Count& count = at(run, homes[i]);
        const bool inside = is_inside(runs, run, page);
        if (from_home != by_owner) {
            (from_home > by_owner ? count.oppose : count.support) += weight;
            count.squares += weight * weight;
            count.supporting += by_owner > from_home;
        }
        count.inside_opposing += inside && from_home > 0;
        count.against += from_home > by_owner && (inside || pattern == policy::Pattern::cyclic);
        // What a twin shows tells of owners, not of single pages.
        stray_[i] = area.samples.find(page) < area.samples.size() &&
                    homing::is_stray(area.ownership, run, page, uses, static_cast<policy::Node>(homes[i]));
        count.inside += stray_[i];
    }
    for (std::size_t i = 0; i < stray_.size(); ++i)
        if (stray_[i] && !policy::contains(certain(run_of[i]), static_cast<policy::Node>(homes[i])))
            doubtful_.push_back(area.telling.page(i));
}

template <class Accepts> policy::NodeSet Evidence::homes_that(std::size_t run, Accepts&& accepts) const {
    policy::NodeSet set = 0;
    for (std::size_t home = 0; home < nodes_; ++home)
        if (accepts(at(run, static_cast<int>(home))))
            set |= policy::node_bit(static_cast<policy::Node>(home));
    return set;
}

bool Evidence::outweighs_opposition(const Count& count) {
    if (count.support <= 0 || count.support <= outweighs * count.oppose) return false;
    if (count.oppose <= 0) return true;
    // Two standard deviations of so many equal samples that are for or against it by chance.
    const double sum = count.support + count.oppose;
    const double samples = sum * sum / count.squares;
    return count.support - count.oppose > 2 * sum / std::sqrt(samples);
}

bool Evidence::is_scattered(std::size_t run) const {
    Count together;
    for (std::size_t home = 0; home < nodes_; ++home) {
        const Count& count = at(run, static_cast<int>(home));
        together.support += count.support;
        together.oppose += count.oppose;
        together.squares += count.squares;
        together.supporting += count.supporting;
    }
    return together.supporting >= scattered_samples && together.support > scattered_share * weights_[run] &&
           outweighs_opposition(together);
}

policy::NodeSet Evidence::likely(std::size_t run) const {
    const bool scattered = is_scattered(run);
    return homes_that(run, [&](const Count& count) {
        return outweighs_opposition(count) || (scattered && count.against == 0);
    });
}

policy::NodeSet Evidence::certain(std::size_t run) const {
    return homes_that(run, [](const Count& count) {
        return count.inside >= beyond_doubt && 8 * count.inside_opposing <= count.inside;
    });
}

} // namespace homing
