// What an area's references teach: each round's touches make its belief anew, with what areas of its kind
// have shown as a prior.
#pragma once

#include "areas/watch.hpp"
#include "machine/team_table.hpp"
#include "model/belief.hpp"

#include <functional>
#include <unordered_map>
#include <vector>

namespace homing {

class Learner {
  public:
    explicit Learner(const TeamTable& team) : team_(team) {}

    /// Before the areas of a round: which areas are of one kind.
    void begin_round(const WatchList& watch);
    /// Takes the fresh touches of an area in, whose homes are known by now. Returns whether they do not fit
    /// to what is believed: then its owners may have changed.
    bool take(WatchedArea& area, std::uint32_t iteration);
    /// Do they show that its owners changed? As dear as some fits.
    bool follow_change(WatchedArea& area, std::uint32_t iteration);
    /// Is the belief older than what is known by now, so that it should be made anew?
    bool is_stale(const WatchedArea& area) const;
    /// What is believed by the touches of one place of the iteration.
    struct PlaceBelief {
        std::uint32_t place;
        std::size_t touches;
        model::Belief belief;
    };
    /// Where the users of an area differ by place (AreaBelief::place): those places that tell most, most
    /// touches first. As dear as so many fits.
    std::vector<PlaceBelief> by_place(WatchedArea& area, std::uint32_t iteration) const;
    /// Makes the belief anew. Some tenths of a millisecond to some milliseconds (tuning::most_team_threads).
    void fit(WatchedArea& area, std::uint32_t iteration);

  private:
    model::Prior prior_of(const WatchedArea& area) const;
    std::vector<model::Touch> shown(AreaBelief& learnt, const PageSet& there, std::uint32_t iteration,
                                    const std::function<bool(const model::SeenTouch&)>& wanted,
                                    std::vector<model::Node>* homes) const;
    bool surprised_by_fresh(const WatchedArea& area) const;

    const TeamTable& team_;
    std::unordered_multimap<std::uint64_t, const WatchedArea*> kinds_; ///< by what makes areas alike
};

} // namespace homing
