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

Chain Chain::ordered(Observations observations) { return {std::move(observations), -1}; }
Chain Chain::switching(Observations observations, double rate) { return {std::move(observations), rate}; }

Chain::Chain(Observations observations, double rate)
    : states_(observations.states), rate_(rate), positions_(std::move(observations.positions)),
      likelihood_(std::move(observations.likelihood)) {
    const std::size_t count = positions_.size(), S = states_;
    invariant(likelihood_.size() == count * S, "every state has a likelihood");
    invariant(std::ranges::is_sorted(positions_), "observations are in order");
    forward_.assign((count + 1) * S, 0);
    const auto row = [S, this](std::size_t i) { return std::span(forward_).subspan(i * S, S); };
    if (rate_ < 0)
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

void Chain::forward(std::span<const double> v, double x0, double x1, std::span<double> out) const {
    if (rate_ >= 0) {
        mix(v, std::exp(-rate_ * (x1 - x0)), out);
        return;
    }
    Binomials borders(passed(x0, x1));
    std::ranges::fill(out, 0.0);
    for (std::size_t a = states_; a-- > 0;)
        borders.next(v[a] > negligible, [&](std::size_t d, double mass) { out[a + d] += mass * v[a]; });
}

void Chain::backward(std::span<const double> v, double x0, double x1, std::span<const double> mass,
                     std::span<double> out) const {
    if (rate_ >= 0) {
        mix(v, std::exp(-rate_ * (x1 - x0)), out);
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
