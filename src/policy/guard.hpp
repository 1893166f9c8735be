// The guard against harm: moving is like buying skis after having rented them (ski rental, Karlin et al.):
// the accumulated cost of remote accesses to an area must reach the cost of the move before the move is made.
//
// While the owners stay the same, a run pays at most twice the better of "never move" and "move at once",
// plus at most one accumulated step (the remote cost is only learned after it was paid). When owners
// alternate, every change is a new rental: at most four times a clairvoyant who may move at every step, plus
// one move (tests/unit/test_policy_guard.cpp checks both against the offline optimum).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/costs.hpp"

namespace homing::policy {

using AreaId = std::uint32_t; // dense, given by the caller; may be used again after forget()

class Guard {
  public:
    explicit Guard(const Costs& costs = {}) : costs_(costs) {}
    void set_costs(const Costs& costs) { costs_ = costs; }
    const Costs& costs() const { return costs_; }

    // Room for areas 0..count-1, so that accumulate() allocates nothing for them.
    void reserve(std::size_t count);

    // Adds what an observed step (an iteration) cost because pages of the area were not on their owners'
    // nodes, as estimated by TouchModel::excess_ns. A negative value says that the wanted placement would
    // have been dearer than the present one; the account never falls below zero.
    void accumulate(AreaId area, double excess_ns);
    void accumulate(AreaId area, std::uint64_t remote_touches, const TouchModel& model, double region_ns) {
        accumulate(area, model.excess_ns(remote_touches, costs_, region_ns));
    }

    // May so many pages of the area be moved now (in so many calls)? A move of nothing is always permitted.
    bool permits(AreaId area, std::uint64_t pages, std::uint64_t calls = 1) const;
    // The most pages that may be moved now with one call.
    std::uint64_t affordable_pages(AreaId area) const;
    // The move was made: its cost is taken off the account, and after a whole move (nothing left to do) it
    // starts anew.
    void moved(AreaId area, std::uint64_t pages, std::uint64_t calls = 1, bool whole = true);

    double accumulated_ns(AreaId area) const;
    double moved_ns() const { return moved_ns_; } // cost of all moves so far, as estimated
    void forget(AreaId area);

  private:
    Costs costs_;
    double moved_ns_ = 0;
    std::vector<double> accounts_; // ns, by area
};

} // namespace homing::policy
