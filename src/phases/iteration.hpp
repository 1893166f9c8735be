// The outer iteration, by whatever finds it. Pure, as phases/period.
#pragma once

#include "phases/anchor.hpp"
#include "phases/period.hpp"

namespace homing::phases {

// Both together: exact periods first; an anchor takes over while exact periods do not last, and gives way
// when one does.
class IterationFinder {
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
    std::uint64_t stable_for() const { return by_anchor_ ? anchor_.stable_for() : period_.stable_for(); }
    const PeriodFinder& period() const { return period_; }
    const AnchorFinder& anchor() const { return anchor_; }
    void reset();

  private:
    Step search(std::uint32_t id);
    Step after_settled(const Step& step);

    PeriodFinder period_;
    AnchorFinder anchor_;
    bool by_anchor_ = false;
};

} // namespace homing::phases
