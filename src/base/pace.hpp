// How much of the time something may take: an allowance at first, and a share of the run beyond it.
#pragma once

namespace homing {

struct Pace {
    double first; ///< seconds
    double share; ///< of the run, 0..1

    /// May it go on, having spent so many seconds of a run of `elapsed`?
    constexpr bool allows(double spent, double elapsed) const noexcept {
        return spent < first + share * elapsed;
    }
    /// Seconds of the run to come until it may; 0: now.
    constexpr double wait(double spent, double elapsed) const noexcept {
        const double needed = (spent - first) / share - elapsed;
        return needed > 0 ? needed : 0;
    }
};

} // namespace homing
