// The cycle in one sequence: an exact period first; an anchor takes over while exact periods do not last, and
// gives way when one does. Pure, as model/period.hpp.
#pragma once

#include "model/anchor.hpp"
#include "model/period.hpp"

namespace homing::phases {

class CycleFinder {
  public:
    Step push(std::uint32_t id) {
        if (period_.settled()) {
            const Step step = period_.push(id);
            if (period_.settled()) return step;
            return after_settled(step);
        }
        return search(id);
    }
    // Whether iterations are found by an anchor (their lengths vary) rather than by an exact period.
    bool by_anchor() const { return by_anchor_; }
    bool found() const { return by_anchor_ || period_.period() != 0; }
    // Ids of an iteration, on average; 0 while none is found.
    double length() const { return by_anchor_ ? anchor_.mean_gap() : period_.period(); }
    // Position of the newest id in its iteration; only where one is found.
    std::uint32_t newest() const { return by_anchor_ ? anchor_.since_anchor() : period_.newest(); }
    std::uint64_t stable_for() const { return by_anchor_ ? anchor_.stable_for() : period_.stable_for(); }
    const PeriodFinder& period() const { return period_; }
    void reset();

  private:
    Step search(std::uint32_t id);
    Step after_settled(const Step& step);

    PeriodFinder period_;
    AnchorFinder anchor_;
    bool by_anchor_ = false;
};

} // namespace homing::phases
