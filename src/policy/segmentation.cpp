#include "policy/segmentation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace homing::policy {

namespace {

constexpr int most_states = most_nodes + 2;
// A run at either end of the sequence is entered or left only once: without this, chance would make more of
// them.
constexpr double end_penalty = 1.5;
using Scores = std::array<double, most_states>;

// Viterbi's algorithm with the same penalty between any two different states, which makes it O(states) a
// sample.
// unbiased: the state that may begin and end the sequence for free (-1: all may).
template <typename Emission>
std::vector<Segment> best_segments(std::size_t samples, int states, double penalty, int unbiased,
                                   Emission&& emission) {
    std::vector<Segment> segments;
    if (samples == 0) return segments;
    struct Step {
        std::array<std::uint64_t, 2> changed; // bit s: the best way to state s comes from another state
        std::uint8_t from;                    // which one
    };
    std::vector<Step> steps(samples);
    Scores score{}, gain{};
    const auto at_end = [&](int s) { return unbiased < 0 || s == unbiased ? 0.0 : end_penalty; };
    emission(0, gain);
    for (int s = 0; s < states; ++s)
        score[static_cast<std::size_t>(s)] = gain[static_cast<std::size_t>(s)] - at_end(s);
    const auto count = static_cast<std::size_t>(states);
    for (std::size_t i = 1; i < samples; ++i) {
        emission(i, gain);
        const auto best = static_cast<std::size_t>(
            std::max_element(score.begin(), score.begin() + static_cast<std::ptrdiff_t>(count)) -
            score.begin());
        const double entry = score[best] - penalty;
        Step& step = steps[i];
        step = {{0, 0}, static_cast<std::uint8_t>(best)};
        for (std::size_t s = 0; s < count; ++s) {
            const bool change = score[s] < entry;
            step.changed[s / 64] |= std::uint64_t{change} << (s % 64);
            score[s] = (change ? entry : score[s]) + gain[s];
        }
    }
    for (int s = 0; s < states; ++s)
        score[static_cast<std::size_t>(s)] -= at_end(s);
    auto state = static_cast<std::size_t>(
        std::max_element(score.begin(), score.begin() + static_cast<std::ptrdiff_t>(count)) - score.begin());
    std::size_t end = samples;
    for (std::size_t i = samples; i-- > 0;) {
        const Step& step = steps[i];
        const bool change = i > 0 && (step.changed[state / 64] >> (state % 64) & 1) != 0;
        if (i == 0 || change) {
            segments.push_back({i, end, static_cast<int>(state)});
            end = i;
            state = step.from;
        }
    }
    std::reverse(segments.begin(), segments.end());
    return segments;
}

// Touches of one page are not independent of each other: more than this many count no further.
constexpr double most_weight = 8;
constexpr double pure_share = 0.98; // of the touches of a page that one node uses
constexpr double major_share = 0.6; // of a page that others use too (another phase, a halo)

// The likelihoods of one sample under each state.
class Emission {
  public:
    Emission(const Samples& samples, double noise, NodeSet sharers);
    void operator()(std::size_t i, Scores& gain) const;

  private:
    double likelihood(double own, double touches) const {
        return 0.5 * std::exp(own * log_pure_ + (touches - own) * log_impure_) +
               0.5 * std::exp(own * log_major_ + (touches - own) * log_minor_);
    }

    const Samples& samples_;
    std::size_t nodes_;
    NodeSet sharers_;
    double noise_, n_;
    double log_match_, log_miss_, log_pure_, log_impure_, log_major_, log_minor_, log_sharer_, log_stranger_;
};

Emission::Emission(const Samples& samples, double noise, NodeSet sharers)
    : samples_(samples), nodes_(static_cast<std::size_t>(samples.nodes())),
      sharers_(sharers & all_nodes(samples.nodes())), noise_(noise), n_(samples.nodes()) {
    const double others = std::max(n_ - 1, 1.0);
    log_match_ = std::log(1 - noise);
    log_miss_ = std::log(noise / others);
    log_pure_ = std::log(pure_share);
    log_impure_ = std::log((1 - pure_share) / others);
    log_major_ = std::log(major_share);
    log_minor_ = std::log((1 - major_share) / others);
    // A little is left for nodes that were not seen sharing.
    const double inside = std::max(size_of(sharers_), 1);
    log_sharer_ = std::log(inside < n_ ? 0.95 / inside : 1 / n_);
    log_stranger_ = std::log(inside < n_ ? 0.05 / (n_ - inside) : 1 / n_);
}

void Emission::operator()(std::size_t i, Scores& gain) const {
    const auto counts = samples_.counts(i);
    const double total = samples_.touches(i);
    const std::size_t shared = nodes_, disordered = nodes_ + 1;
    if (nodes_ == 1 || total == 0) {
        std::fill_n(gain.begin(), nodes_ + 2, 0.0);
        if (nodes_ == 1) gain[shared] = gain[disordered] = -1;
        return;
    }
    if (total == 1) {
        // One touch tells nothing about sharing; a little in favour of "disordered", which claims less.
        std::fill_n(gain.begin(), nodes_, log_miss_);
        gain[static_cast<std::size_t>(samples_.dominant(i))] = log_match_;
        gain[disordered] = -std::log(n_);
        gain[shared] = gain[disordered] - 0.01;
        return;
    }
    // A page that node o owns: with probability 1 - noise half-and-half touched by it alone or mostly by it;
    // else it is a page of any owner.
    const double scale = std::min(1.0, most_weight / total);
    const double touches = total * scale;
    double sum = 0, sharing = 0;
    std::size_t untouched = 0;
    for (std::size_t o = 0; o < nodes_; ++o) {
        if (counts[o] == 0) {
            ++untouched;
            continue;
        }
        const double own = counts[o] * scale;
        gain[o] = likelihood(own, touches);
        sum += gain[o];
        sharing += own * (contains(sharers_, static_cast<Node>(o)) ? log_sharer_ : log_stranger_);
    }
    const double absent = likelihood(0, touches);
    sum += absent * static_cast<double>(untouched);
    const double background = noise_ * sum / n_;
    const double log_absent = std::log((1 - noise_) * absent + background);
    for (std::size_t o = 0; o < nodes_; ++o)
        gain[o] = counts[o] != 0 ? std::log((1 - noise_) * gain[o] + background) : log_absent;
    gain[shared] = std::log((1 - noise_) * std::exp(sharing) + background);
    gain[disordered] = std::log(sum / n_);
}

} // namespace

double change_penalty(std::size_t samples, double margin) {
    return 0.5 * std::log(static_cast<double>(std::max<std::size_t>(samples, 2))) + margin;
}

std::vector<Segment> segment_samples(const Samples& samples, double noise, NodeSet sharers) {
    const Emission emission(samples, noise, sharers);
    return best_segments(samples.size(), samples.nodes() + 2, change_penalty(samples.size()),
                         samples.nodes() + 1, emission);
}

std::vector<Segment> segment_stretch(const Samples& samples, std::size_t first, std::size_t end,
                                     double noise) {
    // The more nodes there are, the more chance makes two neighbours differ, and the more two equal ones say.
    const double margin = std::max(0.5, std::log(static_cast<double>(samples.nodes())) - 0.4);
    constexpr double least_gain = 6; // nats
    const std::size_t count = end - first;
    if (count < 2) return {};
    const double penalty = change_penalty(count, margin);
    const int disordered = samples.nodes() + 1;
    const NodeSet sharers = all_nodes(samples.nodes());
    const Emission emission(samples, noise, sharers);
    std::vector<Segment> found =
        best_segments(count, samples.nodes() + 2, penalty, disordered,
                      [&](std::size_t i, Scores& gain) { emission(first + i, gain); });
    double gain = -log_likelihood(samples, first, end, disordered, noise, sharers);
    gain -= penalty * static_cast<double>(found.size() - 1);
    for (Segment& segment : found) {
        segment.first += first;
        segment.end += first;
        gain += log_likelihood(samples, segment.first, segment.end, segment.state, noise, sharers);
    }
    if (gain < least_gain) found.clear();
    return found;
}

double log_likelihood(const Samples& samples, std::size_t first, std::size_t end, int state, double noise,
                      NodeSet sharers) {
    const Emission emission(samples, noise, sharers);
    Scores gain{};
    double sum = 0;
    for (std::size_t i = first; i < end; ++i) {
        emission(i, gain);
        sum += gain[static_cast<std::size_t>(state)];
    }
    return sum;
}

std::vector<Segment> segment_labels(std::span<const Node> labels, int nodes, double noise) {
    const double match = std::log(1 - noise);
    const double miss = std::log(noise / std::max(nodes - 1, 1));
    return best_segments(labels.size(), nodes, change_penalty(labels.size()), -1,
                         [&](std::size_t i, Scores& gain) {
                             std::fill_n(gain.begin(), static_cast<std::size_t>(nodes), miss);
                             gain[static_cast<std::size_t>(labels[i])] = match;
                         });
}

} // namespace homing::policy
