#include "model/chains.hpp"

#include "base/binomials.hpp"
#include "base/invariant.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace homing::model {
namespace {

constexpr double least_probability = 1e-12;
constexpr double negligible = 1e-14; ///< of a state's mass

/// The share of what is left at x0 that lies before x1.
double passed(double x0, double x1) {
    return std::clamp((x1 - x0) / std::max(1 - x0, least_probability), least_probability,
                      1 - least_probability);
}

void mix(std::span<const double> v, double stay, std::span<double> out) {
    const double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
    for (std::size_t s = 0; s < v.size(); ++s)
        out[s] = stay * v[s] + (1 - stay) * mean;
}

double scale_to_one(std::span<double> v) {
    const double sum = std::accumulate(v.begin(), v.end(), 0.0);
    for (double& value : v)
        value /= sum;
    return sum;
}

} // namespace

Chain::Chain(Observations observations, const Borders& borders)
    : states_(observations.states), borders_(borders), positions_(std::move(observations.positions)),
      likelihood_(std::move(observations.likelihood)) {
    invariant(borders_.window < .5, "borders stay in their order");
    const std::size_t count = positions_.size(), S = states_;
    invariant(likelihood_.size() == count * S, "every state has a likelihood");
    invariant(std::ranges::is_sorted(positions_), "observations are in order");
    forward_.assign((count + 1) * S, 0);
    const auto row = [S, this](std::size_t i) { return std::span(forward_).subspan(i * S, S); };
    if (borders_.are_ordered())
        forward_[0] = 1; // the first block begins the area
    else
        std::fill_n(forward_.begin(), S, 1.0 / static_cast<double>(S));
    double at = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto now = row(i + 1);
        forward(row(i), at, positions_[i], now);
        for (std::size_t s = 0; s < S; ++s)
            now[s] *= likelihood_[i * S + s];
        log_likelihood_ += std::log(scale_to_one(now));
        at = positions_[i];
        if (log_likelihood_ < observations.least) { // it only falls
            log_likelihood_ = -std::numeric_limits<double>::infinity();
            return;
        }
    }
}

void Chain::look_back() {
    const std::size_t count = positions_.size(), S = states_;
    const auto row = [S](std::vector<double>& of, std::size_t i) { return std::span(of).subspan(i * S, S); };
    backward_.assign((count + 1) * S, 1);
    // backward_[i]: what follows observation i - 1, seen from observation i itself (its likelihood included).
    std::vector<double> w(S, 1.0);
    for (std::size_t i = count; i-- > 0;) {
        const auto here = row(backward_, i);
        for (std::size_t s = 0; s < S; ++s)
            here[s] = w[s] * likelihood_[i * S + s];
        scale_to_one(here);
        if (i > 0) backward(here, positions_[i - 1], positions_[i], row(forward_, i), w);
    }
    likelihood_.clear();
}

double Chain::ends(std::size_t state, double x0, double x1) const {
    if (state + 1 == states_) return 0;
    const auto before = [&](double x) {
        const double from_even = x * static_cast<double>(states_) - static_cast<double>(state + 1);
        return std::clamp((from_even / borders_.window + 1) / 2, 0.0, 1.0);
    };
    const double left = 1 - before(x0);
    return left > 0 ? (before(x1) - before(x0)) / left : 1;
}

void Chain::forward(std::span<const double> v, double x0, double x1, std::span<double> out) const {
    if (!borders_.are_ordered()) return mix(v, std::exp(-borders_.rate * (x1 - x0)), out);
    if (borders_.are_nearly_even()) {
        double begun = 0; // since x0: windows do not overlap, so a state that has begun may end as any other
        for (std::size_t s = 0; s < states_; ++s) {
            const double here = v[s] + begun;
            begun = here * ends(s, x0, x1);
            out[s] = here - begun;
        }
        return;
    }
    Binomials borders(passed(x0, x1));
    std::ranges::fill(out, 0.0);
    for (std::size_t a = states_; a-- > 0;)
        borders.next(v[a] > negligible, [&](std::size_t d, double mass) { out[a + d] += mass * v[a]; });
}

void Chain::backward(std::span<const double> v, double x0, double x1, std::span<const double> mass,
                     std::span<double> out) const {
    if (!borders_.are_ordered()) return mix(v, std::exp(-borders_.rate * (x1 - x0)), out);
    if (borders_.are_nearly_even()) {
        for (std::size_t s = states_; s-- > 0;) {
            const double end = ends(s, x0, x1);
            out[s] = (1 - end) * v[s] + (end > 0 ? end * out[s + 1] : 0);
        }
        return;
    }
    Binomials borders(passed(x0, x1));
    for (std::size_t a = states_; a-- > 0;) {
        out[a] = 0;
        borders.next(mass[a] > negligible, [&](std::size_t d, double of) { out[a] += of * v[a + d]; });
    }
}

void Chain::at(double position, std::span<double> out, std::span<double> back) const {
    const auto after = std::ranges::upper_bound(positions_, position);
    const auto left = static_cast<std::size_t>(after - positions_.begin());
    const auto row = [this](const std::vector<double>& of, std::size_t i) {
        return std::span(of).subspan(i * states_, states_);
    };
    invariant(out.size() == states_ && back.size() == states_, "every state has its place");
    forward(row(forward_, left), left > 0 ? positions_[left - 1] : 0, position, out);
    backward(row(backward_, left), position, left < positions_.size() ? positions_[left] : 1, out, back);
    for (std::size_t s = 0; s < states_; ++s)
        out[s] *= back[s];
    scale_to_one(out);
}

} // namespace homing::model
