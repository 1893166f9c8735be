// Distributions with unknown borders, as hidden Markov chains along an area: exact, without a search for the
// borders.
//
// Ordered: GEN_BLOCK in the order of the threads (or of the runs of threads on one node). The R - 1 borders
// are uniform, so the number of borders between two positions is binomial. Switching: runs of any nodes in
// any order, which change at a rate. Both are linear in the touches; ordered is quadratic in its states.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace homing::model {

/// Positions of the observations (ascending, 0..1), and for each the likelihood of every state.
struct Observations {
    std::span<const double> positions;
    std::span<const double> likelihood; ///< positions.size() x states
    std::size_t states = 0;
};

class Chain {
  public:
    /// States follow one another, from the first: R - 1 uniform borders.
    static Chain ordered(const Observations& observations);
    /// Any state may follow any other; `rate` changes are expected over the whole area.
    static Chain switching(const Observations& observations, double rate);

    /// Log of the marginal likelihood of all observations.
    double log_likelihood() const noexcept { return log_likelihood_; }
    /// P(state | observations) at a position, into `out` (one a state); `scratch`: of the same size.
    void at(double position, std::span<double> out, std::span<double> scratch) const;

  private:
    Chain(const Observations& observations, double rate);
    /// The row vector v from position x0 on to x1.
    void forward(std::span<const double> v, double x0, double x1, std::span<double> out) const;
    /// The column vector v from position x1 back to x0, for those states alone in which the chain may be at
    /// x0 (mass > 0).
    void backward(std::span<const double> v, double x0, double x1, std::span<const double> mass,
                  std::span<double> out) const;

    std::size_t states_;
    double rate_; ///< of switching; negative: ordered
    double log_likelihood_ = 0;
    std::vector<double> positions_;
    std::vector<double> forward_,
        backward_; ///< after, and from, each observation; each with the start (the end)
};

} // namespace homing::model
