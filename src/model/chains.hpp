// Distributions with unknown borders, as hidden Markov chains along an area: exact, without a search for the
// borders.
//
// In order: GEN_BLOCK in the order of the threads. Points at which one state ends and the next begins are
// uniform in windows, so how many of a window's lie between two positions is binomial. Borders anywhere: one
// window, the whole area. Nearly even: a window around each border of BLOCK, for the border alone or with the
// ends of its halos. Switching: runs of any nodes in any order, which change at a rate. All are linear in the
// touches, and quadratic in the points of a window.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace homing::model {

/// Positions of the observations (ascending, 0..1), and for each the likelihood of every state.
struct Observations {
    std::vector<double> positions;
    std::vector<double> likelihood; ///< positions.size() x states
    std::size_t states = 0;
    double least = -std::numeric_limits<double>::infinity(); ///< of a log_likelihood() that counts
};

/// How states follow one another along an area.
struct Borders {
    /// Any may follow any other: so many changes are expected over the whole; negative: in order.
    double rate = -1;
    /// In order: the furthest of points from an even border, in blocks, below .5; 0: anywhere.
    double window = 0;
    std::size_t points = 1; ///< in order, between two blocks; between points lie states that are no block
    bool are_ordered() const noexcept { return rate < 0; }
    bool are_nearly_even() const noexcept { return window > 0; }
};

class Chain {
  public:
    Chain(Observations observations, const Borders& borders);

    /// Log of the marginal likelihood of all observations; minus infinity below Observations::least.
    double log_likelihood() const noexcept { return log_likelihood_; }
    /// Once, before at(): what each observation says of those before it. As dear as all the rest.
    void look_back();
    /// P(state | observations) at a position, into `out` (one a state); `scratch`: of the same size.
    void at(double position, std::span<double> out, std::span<double> scratch) const;

  private:
    /// The row vector v from position x0 on to x1.
    void forward(std::span<const double> v, double x0, double x1, std::span<double> out) const;
    /// The column vector v from position x1 back to x0, for those states alone in which the chain may be at
    /// x0 (mass > 0).
    void backward(std::span<const double> v, double x0, double x1, std::span<const double> mass,
                  std::span<double> out) const;
    /// Of a window's points that are not before x0, the share that is before x1.
    double passed(std::size_t window, double x0, double x1) const noexcept;

    std::size_t states_;
    Borders borders_;
    std::size_t windows_, points_; ///< in order: how many windows, and points in each
    double log_likelihood_ = 0;
    std::vector<double> positions_, likelihood_; ///< the latter until look_back()
    std::vector<double> forward_,
        backward_; ///< after, and from, each observation; each with the start (the end)
};

} // namespace homing::model
