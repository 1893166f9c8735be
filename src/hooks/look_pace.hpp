// How often something is looked at whose looks cost time and whose changes matter at once: a small share of
// the time at the most, but for some looks in a row.
#pragma once

#include <algorithm>
#include <limits>

namespace homing::hooks {

/// Times are seconds. Not for several threads.
class LookPace {
  public:
    /// A look is made again after so many times what it costs; of something that has changed ...
    static constexpr double usual_share = 1024;
    static constexpr double share_of_changes = 16;
    /// ... so many looks may be made ahead of that: a team of threads comes all at once, right where the
    /// first windows are wanted.
    static constexpr double most_ahead = 4;

    /// May it be looked at now? `cost`: what a look is expected to take. The first look is always due.
    bool due(double now, double cost, bool changed) const noexcept {
        return changed ? ahead(now, cost) >= 1 : now >= last_ + cost * usual_share;
    }
    void looked(double now, double cost) noexcept {
        left_ = std::max(0.0, ahead(now, cost) - 1);
        last_ = now;
    }

  private:
    double ahead(double now, double cost) const noexcept {
        const double each = cost * share_of_changes;
        const double passed = now - last_;
        return passed < most_ahead * each ? std::min(most_ahead, left_ + passed / each) : most_ahead;
    }

    double last_ = -std::numeric_limits<double>::infinity();
    double left_ = most_ahead; ///< looks, at that time
};

} // namespace homing::hooks
