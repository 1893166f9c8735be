// The binomial distributions of n = 0, 1, 2, ... with one p, in turn: each by its recurrence from its
// likelier end, whose mass is the one of n - 1 times a factor. So nothing is raised to a power.
#pragma once

#include <algorithm>
#include <cstddef>

namespace homing {

class Binomials {
  public:
    /// p: in [0, 1].
    explicit Binomials(double p)
        : p_(p), from_zero_(p <= .5), likelier_(std::max(p, 1 - p)),
          odds_(from_zero_ ? p / (1 - p) : (1 - p) / p) {}
    /// Visits (d, P(d of n)), if that is wanted, from the likelier end on, and goes on to n + 1. What lies
    /// beyond the mode and could be told by nothing is left out: mostly p is small, and few d are likely.
    template <class Visit> void next(bool wanted, Visit&& visit) {
        const double mode = n_ * std::min(p_, 1 - p_);
        double mass = end_;
        constexpr double impossible = 1e-60;
        for (int i = 0; wanted && i <= n_ && (mass > impossible || i <= mode); ++i) {
            visit(static_cast<std::size_t>(from_zero_ ? i : n_ - i), mass);
            mass *= static_cast<double>(n_ - i) / (i + 1) * odds_;
        }
        ++n_;
        end_ *= likelier_;
    }

  private:
    double p_;
    bool from_zero_;
    double likelier_, odds_;
    double end_ = 1; ///< P(0 of n), or P(n of n)
    int n_ = 0;
};

} // namespace homing
