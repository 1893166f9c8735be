// The guard against harm: moving is like buying skis after having rented them (ski rental, Karlin et al.):
// the accumulated cost of remote accesses to an area must reach the cost of the move before the move is made.
//
// While the owners stay the same, a run pays at most twice the better of "never move" and "move at once",
// plus at most one accumulated step (the remote cost is only learned after it was paid). When owners
// alternate, every change is a new rental: at most four times a clairvoyant who may move at every step, plus
// one move (tests/unit/test_model_guard.cpp checks both against the offline optimum).
//
// The first move of an area's pages is bought in advance: programs that compute in parallel regions go over
// their arrays many times. That is ski rental with a prediction (Purohit, Svitkina and Kumar 2018, section
// 2.1): to buy after the share 1/advance of the price costs at most 1 + 1/advance of the best where the
// prediction is right, and 1 + advance of it where the program ends at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/costs.hpp"

namespace homing::policy {

using AreaId = std::uint32_t; // dense, given by the caller

class Guard {
  public:
    explicit Guard(const Costs& costs = {}) : costs_(costs) {}
    void set_costs(const Costs& costs) { costs_ = costs; }
    const Costs& costs() const { return costs_; }

    // Adds what an observed step (an iteration) cost because pages of the area were not on their owners'
    // nodes, as estimated by TouchModel::excess_ns. A negative value says that the wanted placement would
    // have been dearer than the present one; the account never falls below zero.
    void accumulate(AreaId area, double excess_ns);

    // What remote accesses to the area must still cost before so many pages of it may be moved (in so many
    // calls), in nanoseconds; 0: now, as a move of nothing always may. In advance where no page of the area,
    // which has so many, need have moved twice then.
    double lacking_ns(AreaId area, std::uint64_t pages, std::uint64_t calls = 1,
                      std::uint64_t pages_of_area = 0) const;
    // The move was made: its cost is taken off the account, and after a whole move (nothing left to do) it
    // starts anew.
    void moved(AreaId area, std::uint64_t pages, std::uint64_t calls = 1, bool whole = true);

    double accumulated_ns(AreaId area) const {
        return area < accounts_.size() ? accounts_[area].remote_ns : 0.0;
    }

  private:
    struct Account {
        double remote_ns = 0;    // since the last move
        std::uint64_t moved = 0; // pages, in all moves
    };
    void reserve(std::size_t count);
    Costs costs_;
    std::vector<Account> accounts_; // by area
};

} // namespace homing::policy
