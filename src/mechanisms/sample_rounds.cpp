// Which granules a round of observation by windows samples, of which areas.
#include "mechanisms/engine.hpp"

#include <algorithm>
#include <functional>

namespace homing {
namespace {

/// Owners that drift show at the borders first.
void add_border_samples(WatchedArea& area) {
    const auto& runs = area.ownership.runs();
    for (std::size_t r = 1; r < runs.size() && r < 16; ++r)
        for (const std::uint64_t distance : {1, 4, 16, 64}) {
            if (runs[r].first >= distance) area.pending.push_back(runs[r].first - distance);
            if (runs[r].first + distance < area.granules) area.pending.push_back(runs[r].first + distance);
        }
}

/// Is a page that seems misplaced alone, or one of many?
void add_neighbours_of_suspects(WatchedArea& area) {
    constexpr std::size_t most_suspects = 8;
    const std::size_t count = std::min(area.suspects.size(), most_suspects);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t suspect = area.suspects[i * area.suspects.size() / count];
        for (std::uint64_t distance = 1; distance <= 64; distance *= 4) {
            if (suspect >= distance) area.pending.push_back(suspect - distance);
            if (suspect + distance < area.granules) area.pending.push_back(suspect + distance);
        }
    }
}

bool only_borders(const policy::Ownership& ownership) {
    return std::ranges::all_of(ownership.doubtful(), [](const policy::DoubtfulRange& doubt) {
        return doubt.doubt == policy::Doubt::border;
    });
}

} // namespace

/// Which granules the next window should sample.
void Engine::plan_samples(bool check) {
    auto& areas = watch_.areas();
    if (areas.empty() || !mechanism_->samples()) {
        plan_.gather(watch_); // forget what is gone
        return;
    }
    constexpr std::size_t all_samples = 4096;
    constexpr std::size_t most_areas = 512;
    // Of very many areas: those that are known to be used, the largest, and by turns some of the others.
    std::size_t large = 0;
    if (areas.size() > most_areas) {
        std::vector<std::size_t> sizes;
        for (const auto& area : areas)
            sizes.push_back(area->range.bytes());
        const auto nth = sizes.begin() + static_cast<std::ptrdiff_t>(most_areas / 2);
        std::nth_element(sizes.begin(), nth, sizes.end(), std::greater<>());
        large = *nth;
    }
    const std::size_t turns = areas.size() / (most_areas / 2) + 1;
    const std::size_t each =
        std::clamp<std::size_t>(all_samples / std::min(areas.size(), most_areas), 8, 384);
    // Borders want more than a round affords, and would leave nothing to what lies far from them: they get
    // what halves their gaps best, a few evenly spaced ones.
    const std::size_t for_borders = std::min(each, std::max<std::size_t>(16, plan_.armed_each()));
    for (const auto& area : areas) {
        area->pending.clear();
        if (area->samples.empty() && area->range.bytes() <= large && area->id % turns != iteration_ % turns)
            continue;
        if (check) {
            area->pending = area->plan.check(std::min<std::size_t>(each, 48));
        } else if (area->samples.empty()) {
            area->pending = area->plan.first(each);
        } else {
            area->pending = area->plan.next(area->ownership, area->samples,
                                            only_borders(area->ownership) ? for_borders : each);
            const auto thin = area->plan.check(std::min<std::size_t>(each, 4));
            area->pending.insert(area->pending.end(), thin.begin(), thin.end());
            area->thinly_sampled = false;
            for (const WindowPlan::Lacking& part : plan_.lacking(*area)) {
                area->thinly_sampled = true;
                if (!area->was_misplaced) break;
                const auto more = area->plan.within(part.granules, part.unseen ? 16 : 4);
                area->pending.insert(area->pending.end(), more.begin(), more.end());
            }
            if (area->was_misplaced) {
                // Borders take most samples: what lies far from them would never be looked at.
                const auto far =
                    area->plan.gaps(area->ownership, area->samples, std::min<std::size_t>(each, 16));
                area->pending.insert(area->pending.end(), far.begin(), far.end());
                area->thinly_sampled |= area->plan.wide_gap();
            }
        }
        if (check || area->drifts) add_border_samples(*area);
        if (!check) add_neighbours_of_suspects(*area);
        std::sort(area->pending.begin(), area->pending.end());
        area->pending.erase(std::unique(area->pending.begin(), area->pending.end()), area->pending.end());
    }
    plan_.gather(watch_);
}

} // namespace homing
