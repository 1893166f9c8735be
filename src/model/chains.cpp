#include "model/chains.hpp"

#include "base/binomials.hpp"
#include "base/invariant.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace homing::model {
namespace {

constexpr double negligible = 1e-14; ///< of a state's mass

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
    : states_(observations.states), borders_(borders),
      windows_(borders.are_nearly_even() ? (states_ - 1) / borders.points : 1),
      points_(borders.are_nearly_even() ? borders.points : states_ - 1),
      positions_(std::move(observations.positions)), likelihood_(std::move(observations.likelihood)) {
    invariant(borders_.window < .5, "borders stay in their order");
    invariant(borders_.points > 0 && (states_ - 1) % borders_.points == 0, "points lie between blocks");
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

double Chain::passed(std::size_t window, double x0, double x1) const noexcept {
    double begin = 0, end = 1;
    if (borders_.are_nearly_even()) {
        const auto blocks = static_cast<double>(windows_ + 1), even = static_cast<double>(window + 1);
        begin = (even - borders_.window) / blocks;
        end = (even + borders_.window) / blocks;
    }
    const double from = std::max(x0, begin);
    return from < end ? std::clamp((x1 - from) / (end - from), 0.0, 1.0) : 1;
}

void Chain::forward(std::span<const double> v, double x0, double x1, std::span<double> out) const {
    if (!borders_.are_ordered()) return mix(v, std::exp(-borders_.rate * (x1 - x0)), out);
    std::ranges::copy(v, out.begin());
    for (std::size_t window = 0, first = 0; window < windows_; ++window, first += points_) {
        const double share = passed(window, x0, x1);
        if (share <= 0) break;
        Binomials ahead(share);
        for (std::size_t a = first + points_ + 1; a-- > first;) {
            const double mass = std::exchange(out[a], 0.0);
            ahead.next(mass > negligible, [&](std::size_t d, double part) { out[a + d] += part * mass; });
        }
    }
}

void Chain::backward(std::span<const double> v, double x0, double x1, std::span<const double> mass,
                     std::span<double> out) const {
    if (!borders_.are_ordered()) return mix(v, std::exp(-borders_.rate * (x1 - x0)), out);
    std::ranges::copy(v, out.begin());
    for (std::size_t window = windows_, behind = states_ - 1; window-- > 0; behind -= points_) {
        const double share = passed(window, x0, x1);
        if (share <= 0) continue;
        Binomials ahead(share);
        ahead.next(false, [](std::size_t, double) {});
        for (std::size_t a = behind; a-- > behind - points_;) {
            out[a] = 0;
            // The window before leads to the first of this one's states.
            ahead.next(mass[a] > negligible || a + points_ == behind, [&](std::size_t d, double part) {
                out[a] += part * (a + d == behind ? out[behind] : v[a + d]);
            });
        }
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
