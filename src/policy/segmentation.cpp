#include "policy/segmentation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace homing::policy {

namespace {

constexpr int most_states = most_nodes + 2;
using Scores = std::array<double, most_states>;

// Viterbi's algorithm with the same penalty between any two different states, which makes it O(states) a
// sample.
template <typename Emission>
std::vector<Segment> best_segments(std::size_t samples, int states, double penalty, Emission&& emission) {
    std::vector<Segment> segments;
    if (samples == 0) return segments;
    struct Step {
        std::array<std::uint64_t, 2> changed; // bit s: the best way to state s comes from another state
        std::uint8_t from;                    // which one
    };
    std::vector<Step> steps(samples);
    Scores score{}, gain{};
    emission(0, gain);
    for (int s = 0; s < states; ++s)
        score[static_cast<std::size_t>(s)] = gain[static_cast<std::size_t>(s)];
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

} // namespace

double change_penalty(std::size_t samples) {
    return 0.5 * std::log(static_cast<double>(std::max<std::size_t>(samples, 2))) + 3.0;
}

std::vector<Segment> segment_samples(const Samples& samples, double noise, NodeSet sharers) {
    const int nodes = samples.nodes();
    const auto width = static_cast<std::size_t>(nodes);
    const std::size_t shared = width, disordered = width + 1;
    const double n = nodes;
    const double others = std::max(n - 1, 1.0);
    const double log_uniform = -std::log(n);
    const double log_match = std::log(1 - noise), log_miss = std::log(noise / others);
    const double log_pure = std::log(pure_share), log_impure = std::log((1 - pure_share) / others);
    const double log_major = std::log(major_share), log_minor = std::log((1 - major_share) / others);
    const double inside = std::max(size_of(sharers & all_nodes(nodes)), 1);
    // A little is left for nodes that were not seen sharing.
    const double log_sharer = std::log(inside < n ? 0.95 / inside : 1 / n);
    const double log_stranger = std::log(inside < n ? 0.05 / (n - inside) : 1 / n);

    const auto emission = [&](std::size_t i, Scores& gain) {
        const auto counts = samples.counts(i);
        const double total = samples.touches(i);
        if (nodes == 1 || total == 0) {
            std::fill_n(gain.begin(), width + 2, 0.0);
            if (nodes == 1) gain[shared] = gain[disordered] = -1;
            return;
        }
        if (total == 1) {
            // One touch tells nothing about sharing; a little in favour of "disordered", which claims less.
            std::fill_n(gain.begin(), width, log_miss);
            gain[static_cast<std::size_t>(samples.dominant(i))] = log_match;
            gain[shared] = log_uniform - 0.01;
            gain[disordered] = log_uniform;
            return;
        }
        // A page that node o owns: with probability 1 - noise half-and-half touched by it alone or mostly by
        // it; else it is a page of any owner.
        const double scale = std::min(1.0, most_weight / total);
        const double touches = total * scale;
        const auto likelihood = [&](double own) {
            return 0.5 * std::exp(own * log_pure + (touches - own) * log_impure) +
                   0.5 * std::exp(own * log_major + (touches - own) * log_minor);
        };
        double sum = 0, sharing = 0;
        int untouched = 0;
        for (std::size_t o = 0; o < width; ++o) {
            if (counts[o] == 0) {
                ++untouched;
                continue;
            }
            const double own = counts[o] * scale;
            gain[o] = likelihood(own);
            sum += gain[o];
            sharing += own * (contains(sharers, static_cast<Node>(o)) ? log_sharer : log_stranger);
        }
        const double absent = likelihood(0);
        sum += absent * untouched;
        const double background = noise * sum / n;
        for (std::size_t o = 0; o < width; ++o)
            if (counts[o] != 0) gain[o] = std::log((1 - noise) * gain[o] + background);
        const double log_absent = untouched ? std::log((1 - noise) * absent + background) : 0;
        for (std::size_t o = 0; o < width; ++o)
            if (counts[o] == 0) gain[o] = log_absent;
        gain[shared] = std::log((1 - noise) * std::exp(sharing) + background);
        gain[disordered] = std::log(sum / n);
    };
    return best_segments(samples.size(), nodes + 2, change_penalty(samples.size()), emission);
}

std::vector<Segment> segment_labels(std::span<const Node> labels, int nodes, double noise) {
    const double match = std::log(1 - noise);
    const double miss = std::log(noise / std::max(nodes - 1, 1));
    return best_segments(labels.size(), nodes, change_penalty(labels.size()),
                         [&](std::size_t i, Scores& gain) {
                             std::fill_n(gain.begin(), static_cast<std::size_t>(nodes), miss);
                             gain[static_cast<std::size_t>(labels[i])] = match;
                         });
}

} // namespace homing::policy
