// Which granules a round of observation by windows samples, of which areas.
#include "mechanisms/engine.hpp"

#include <algorithm>

namespace homing {
namespace {

/// Samples that a round asks for, of all areas together, and of each.
constexpr std::size_t all_samples = 4096;
constexpr std::size_t least_samples = 8;
constexpr std::size_t most_samples = 384;
/// Areas that a round samples; of more than these by turns some of those that are known to be used, and some
/// of the others.
constexpr std::size_t most_areas = 512;
/// Of very many areas the few that are so many times as large as most have their samples in every round, and
/// leave less to the others: there the pages are that soonest pay for their samples.
constexpr std::uint64_t stands_out = 4;
constexpr std::size_t areas_beside_large = 32;

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

/// Which of those that a move left where they are would belong elsewhere?
void add_left_behind(WatchedArea& area) {
    const std::vector<std::uint64_t>& unseen = area.left_behind.begin_round(
        [&](std::uint64_t granule) { return area.samples.find(granule) < area.samples.size(); });
    area.pending.insert(area.pending.end(), unseen.begin(), unseen.end());
    area.thinly_sampled |= !unseen.empty();
}

bool only_borders(const policy::Ownership& ownership) {
    return std::ranges::all_of(ownership.doubtful(), [](const policy::DoubtfulRange& doubt) {
        return doubt.doubt == policy::Doubt::border;
    });
}

/// By turns as many of these as a round has room for.
void add_turn(const std::vector<WatchedArea*>& group, std::size_t room, std::uint32_t round,
              std::vector<WatchedArea*>& out) {
    const std::size_t turns = (group.size() + room - 1) / room;
    for (std::size_t i = 0; i < group.size(); ++i)
        if (i % turns == round % turns) out.push_back(group[i]);
}

/// The areas that a round samples. What does not exist yet has nothing to be sampled.
std::vector<WatchedArea*> areas_of_round(const WatchList& watch, std::uint32_t round) {
    std::vector<WatchedArea*> all;
    std::uint64_t bytes = 0;
    for (const auto& area : watch.areas()) {
        area->pending.clear();
        if (!area->seen) continue;
        all.push_back(area.get());
        bytes += area->used_bytes();
    }
    if (all.size() <= most_areas) return all;
    std::vector<WatchedArea*> large, used, others;
    for (WatchedArea* area : all) {
        if (area->used_bytes() > stands_out * (bytes / all.size()))
            large.push_back(area);
        else
            (area->samples.empty() ? others : used).push_back(area);
    }
    std::vector<WatchedArea*> chosen;
    const std::size_t room = large.empty() ? most_areas / 2 : areas_beside_large;
    add_turn(large, most_areas / 2, round, chosen);
    add_turn(used, room, round, chosen);
    add_turn(others, room, round, chosen);
    return chosen;
}

/// How many samples each area of a round may have: the same share for each, or by its bytes, if that is more.
class Shares {
  public:
    explicit Shares(const std::vector<WatchedArea*>& areas) : equal_(all_samples / areas.size()) {
        for (const WatchedArea* area : areas)
            bytes_ += static_cast<double>(area->used_bytes());
    }
    std::size_t of(const WatchedArea& area) const {
        const double by_size = all_samples * (static_cast<double>(area.used_bytes()) / bytes_);
        return std::clamp(std::max(equal_, static_cast<std::size_t>(by_size)), least_samples, most_samples);
    }

  private:
    std::size_t equal_;
    double bytes_ = 0;
};

} // namespace

/// Which granules the next window should sample.
void Engine::plan_samples(bool check) {
    const std::vector<WatchedArea*> areas = areas_of_round(watch_, iteration_);
    if (areas.empty() || !mechanism_->samples()) {
        plan_.gather(watch_); // forget what is gone
        return;
    }
    const Shares shares(areas);
    for (WatchedArea* area : areas) {
        // Of what is drawn from an area that exists in part, some does not exist: so many more are drawn.
        const auto drawn = [area](std::size_t samples) {
            return static_cast<std::size_t>(static_cast<double>(samples) / area->share_there);
        };
        const std::size_t each = drawn(shares.of(*area));
        // Borders want more than a round affords, and would leave nothing to what lies far from them: they
        // get what halves their gaps best, a few evenly spaced ones.
        const std::size_t for_borders = std::min(each, drawn(std::max<std::size_t>(16, plan_.armed_each())));
        if (check) {
            area->pending = area->plan.check(std::min(each, drawn(48)));
        } else if (area->samples.empty()) {
            area->pending = area->plan.first(each);
        } else {
            area->pending = area->plan.next(area->ownership, area->samples, area->telling,
                                            only_borders(area->ownership) ? for_borders : each);
            const auto thin = area->plan.check(std::min(each, drawn(4)));
            area->pending.insert(area->pending.end(), thin.begin(), thin.end());
            area->thinly_sampled = false;
            for (const WindowPlan::Lacking& part : plan_.lacking(*area)) {
                area->thinly_sampled = true;
                if (!area->was_misplaced) break;
                const auto more = area->plan.within(part.granules, drawn(part.unseen ? 16 : 4));
                area->pending.insert(area->pending.end(), more.begin(), more.end());
            }
            if (area->was_misplaced) {
                // Borders take most samples: what lies far from them would never be looked at.
                const auto far = area->plan.gaps(area->ownership, area->samples, std::min(each, drawn(16)));
                area->pending.insert(area->pending.end(), far.begin(), far.end());
                area->thinly_sampled |= area->plan.wide_gap();
            }
        }
        if (check || area->drifts) add_border_samples(*area);
        if (!check) {
            add_neighbours_of_suspects(*area);
            add_left_behind(*area);
        }
        std::sort(area->pending.begin(), area->pending.end());
        area->pending.erase(std::unique(area->pending.begin(), area->pending.end()), area->pending.end());
        survey_.keep_existing(*area, area->pending);
    }
    plan_.gather(watch_);
}

} // namespace homing
