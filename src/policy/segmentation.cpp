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

// Viterbi's algorithm, O(states) a sample. A change between two states below `loose` costs `penalty`, any
// other only half of it. unbiased: the state that may begin and end the sequence for free (-1: all may).
template <typename Emission>
std::vector<Segment> best_segments(std::size_t samples, int states, double penalty, int unbiased, int loose,
                                   Emission&& emission) {
    std::vector<Segment> segments;
    if (samples == 0) return segments;
    struct Step {
        std::array<std::uint64_t, 2> changed; // bit s: the best way to state s comes from another state
        std::uint8_t from, from_to_loose;     // which one, if s is below `loose`, and if it is not
    };
    std::vector<Step> steps(samples);
    Scores score{}, gain{};
    const auto at_end = [&](int s) { return unbiased < 0 || s == unbiased ? 0.0 : end_penalty; };
    emission(0, gain);
    for (int s = 0; s < states; ++s)
        score[static_cast<std::size_t>(s)] = gain[static_cast<std::size_t>(s)] - at_end(s);
    const auto count = static_cast<std::size_t>(states), firm = static_cast<std::size_t>(loose);
    const auto best_of = [&](std::size_t first, std::size_t end) {
        const auto at = score.begin();
        return static_cast<std::size_t>(
            std::max_element(at + static_cast<std::ptrdiff_t>(first), at + static_cast<std::ptrdiff_t>(end)) -
            at);
    };
    for (std::size_t i = 1; i < samples; ++i) {
        emission(i, gain);
        std::size_t from = best_of(0, firm), from_to_loose = from;
        double entry = score[from] - penalty;
        if (firm < count) {
            const std::size_t best_loose = best_of(firm, count);
            if (score[best_loose] > score[from]) from_to_loose = best_loose;
            if (score[best_loose] - penalty / 2 > entry) {
                entry = score[best_loose] - penalty / 2;
                from = best_loose;
            }
        }
        const double entry_to_loose = score[from_to_loose] - penalty / 2;
        Step& step = steps[i];
        step = {{0, 0}, static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(from_to_loose)};
        for (std::size_t s = 0; s < count; ++s) {
            const double other = s < firm ? entry : entry_to_loose;
            const bool change = score[s] < other;
            step.changed[s / 64] |= std::uint64_t{change} << (s % 64);
            score[s] = (change ? other : score[s]) + gain[s];
        }
    }
    for (int s = 0; s < states; ++s)
        score[static_cast<std::size_t>(s)] -= at_end(s);
    std::size_t state = best_of(0, count);
    std::size_t end = samples;
    for (std::size_t i = samples; i-- > 0;) {
        const Step& step = steps[i];
        const bool change = i > 0 && (step.changed[state / 64] >> (state % 64) & 1) != 0;
        if (i == 0 || change) {
            segments.push_back({i, end, static_cast<int>(state)});
            end = i;
            state = state < firm ? step.from : step.from_to_loose;
        }
    }
    std::reverse(segments.begin(), segments.end());
    return segments;
}

// Touches of one page are not independent of each other: more than this many count no further.
constexpr double most_weight = 8;
constexpr double pure_share = 0.98; // of the touches of a page that one node uses
constexpr double major_share = 0.6; // of a page that others use too (another phase, a halo)
// Of the nodes that share a page the one that touched it last touches it again as often as this at least: one
// look at a page may count several touches.
constexpr double least_repeat = 0.1;

// So many samples lie in an equal stretch of pages where they do not crowd.
constexpr double most_in_stretch = 2;
constexpr int weighing_rounds = 4;

// Disorder is told by the owners of this many samples on either side: more than a short run has, few enough
// to notice where a mix begins.
constexpr double window_reach = 32;
// Samples of each node besides those seen, in a whole area (Krichevsky and Trofimov 1981) and in a few.
constexpr double smoothing = 0.5, smoothing_of_few = 1;
// Disorder never expects more of one node than this: where one node has nearly all, it owns the run, and the
// others are noise.
constexpr double most_expected = 0.7;

// How likely a page's touches are if one node owns it: half-and-half touched by it alone or mostly by it.
class OwnedPage {
  public:
    explicit OwnedPage(int nodes) {
        const double others = std::max(nodes - 1, 1);
        log_pure_ = std::log(pure_share);
        log_impure_ = std::log((1 - pure_share) / others);
        log_major_ = std::log(major_share);
        log_minor_ = std::log((1 - major_share) / others);
    }
    // own: of the touches, those of the node.
    double likelihood(double own, double touches) const {
        return 0.5 * std::exp(own * log_pure_ + (touches - own) * log_impure_) +
               0.5 * std::exp(own * log_major_ + (touches - own) * log_minor_);
    }

  private:
    double log_pure_, log_impure_, log_major_, log_minor_;
};

// The likelihoods of one sample under each state.
class Emission {
  public:
    Emission(const Evidence& evidence, double noise, NodeSet sharers);
    void operator()(std::size_t i, Scores& gain) const;

  private:
    void likelihoods(std::size_t i, Scores& gain) const;

    const Evidence& evidence_;
    std::size_t nodes_;
    NodeSet sharers_;
    double noise_, n_;
    OwnedPage owned_;
    double log_match_, log_miss_, log_sharer_, log_stranger_, log_repeat_;
};

Emission::Emission(const Evidence& evidence, double noise, NodeSet sharers)
    : evidence_(evidence), nodes_(static_cast<std::size_t>(evidence.samples().nodes())),
      sharers_(sharers & all_nodes(evidence.samples().nodes())), noise_(noise),
      n_(evidence.samples().nodes()), owned_(evidence.samples().nodes()) {
    const double others = std::max(n_ - 1, 1.0);
    log_match_ = std::log(1 - noise);
    log_miss_ = std::log(noise / others);
    log_repeat_ = std::log(least_repeat);
    // A little is left for nodes that were not seen sharing.
    const double inside = std::max(size_of(sharers_), 1);
    log_sharer_ = std::log(inside < n_ ? 0.95 / inside : 1 / n_);
    log_stranger_ = std::log(inside < n_ ? 0.05 / (n_ - inside) : 1 / n_);
}

void Emission::operator()(std::size_t i, Scores& gain) const {
    likelihoods(i, gain);
    const double weight = evidence_.weight(i);
    if (weight < 1)
        for (std::size_t s = 0; s < nodes_ + 2; ++s)
            gain[s] *= weight;
}

void Emission::likelihoods(std::size_t i, Scores& gain) const {
    const Samples& samples = evidence_.samples();
    const auto counts = samples.counts(i);
    const double total = samples.touches(i);
    const std::size_t shared = nodes_, disordered = nodes_ + 1;
    if (nodes_ == 1 || total == 0) {
        std::fill_n(gain.begin(), nodes_ + 2, 0.0);
        if (nodes_ == 1) gain[shared] = gain[disordered] = -1;
        return;
    }
    gain[disordered] = evidence_.disorder(i);
    if (samples.seen_once(i)) {
        // One look tells nothing about sharing; a little in favour of "disordered", which claims less.
        std::fill_n(gain.begin(), nodes_, log_miss_);
        gain[static_cast<std::size_t>(samples.dominant(i))] = log_match_;
        gain[shared] = gain[disordered] - 0.01;
        return;
    }
    // Where node o owns the pages, one is with probability 1 - noise its, else a page of any owner.
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
        gain[o] = owned_.likelihood(own, touches);
        sum += gain[o];
        const double first = contains(sharers_, static_cast<Node>(o)) ? log_sharer_ : log_stranger_;
        sharing += std::min(own, 1.0) * first + std::max(own - 1, 0.0) * std::max(first, log_repeat_);
    }
    const double absent = owned_.likelihood(0, touches);
    sum += absent * static_cast<double>(untouched);
    const double background = noise_ * sum / n_;
    const double log_absent = std::log((1 - noise_) * absent + background);
    for (std::size_t o = 0; o < nodes_; ++o)
        gain[o] = counts[o] != 0 ? std::log((1 - noise_) * gain[o] + background) : log_absent;
    gain[shared] = std::log((1 - noise_) * std::exp(sharing) + background);
}

} // namespace

// -------------------------------------------------------------------------------------------------- Evidence

Evidence::Evidence(const Samples& samples, std::size_t first, std::size_t end, bool even)
    : samples_(samples), first_(first), end_(end), total_weight_(static_cast<double>(end - first)),
      weight_(end - first, 1.0), spread_(end - first, 1.0), disorder_(end - first, 0.0),
      disorder_of_owner_(end - first, 0.0) {
    if (first == end) return;
    if (even) weigh_evenly();
    find_disorder(even ? smoothing : smoothing_of_few);
}

// As many equal stretches of pages as there would be samples if none crowded. Crowded ones weigh less each,
// but more together the more they are: what is small must be seen, too, once it was looked at closely.
void Evidence::weigh_evenly() {
    const std::uint64_t begin = samples_.page(first_);
    const auto pages = static_cast<double>(samples_.page(end_ - 1) + 1 - begin);
    double stretches = total_weight_;
    for (int round = 0; round < weighing_rounds; ++round) {
        const double width = pages / stretches;
        total_weight_ = stretches = 0;
        for (std::size_t i = first_; i < end_;) {
            const auto stretch = std::floor(static_cast<double>(samples_.page(i) - begin) / width);
            const double limit = static_cast<double>(begin) + (stretch + 1) * width;
            std::size_t until = i + 1;
            while (until < end_ && static_cast<double>(samples_.page(until)) < limit)
                ++until;
            const auto count = static_cast<double>(until - i);
            const double spread = std::min(1.0, most_in_stretch / count), weight = std::sqrt(spread);
            for (; i < until; ++i) {
                spread_[i - first_] = spread;
                weight_[i - first_] = weight;
            }
            stretches += spread * count;
            total_weight_ += weight * count;
        }
    }
}

void Evidence::find_disorder(double prior) {
    const auto nodes = static_cast<std::size_t>(samples_.nodes());
    const OwnedPage owned(samples_.nodes());
    // The samples in the window [low, high): their weights, shared among the nodes that touched them.
    std::vector<double> around(nodes, 0.0);
    double inside = 0, before = 0, reached = 0; // weight in the window, before sample i, and up to high
    const auto weigh = [&](std::size_t i, double sign) {
        const auto counts = samples_.counts(i);
        const double weight = sign * this->weight(i);
        const double scale = weight / std::max(samples_.touches(i), 1u);
        for (std::size_t n = 0; n < nodes; ++n)
            around[n] += counts[n] * scale;
        inside += weight;
    };
    std::size_t low = first_, high = first_;
    double left = 0; // weight before low
    for (std::size_t i = first_; i < end_; ++i) {
        for (; high < end_ && (high <= i || reached < before + weight(i) + window_reach); ++high) {
            weigh(high, 1);
            reached += weight(high);
        }
        for (; left + weight(low) + window_reach < before; ++low) {
            weigh(low, -1);
            left += weight(low);
        }
        const double own = weight(i);
        before += own;
        const double total = samples_.touches(i);
        if (total == 0) continue;
        const auto counts = samples_.counts(i);
        const double others = std::max(inside - own, 0.0) + prior * static_cast<double>(nodes);
        const auto expected = [&](std::size_t o) {
            return (std::max(around[o] - own * counts[o] / total, 0.0) + prior) / others;
        };
        const auto capped = [](double share) { return std::min(share, most_expected); };
        disorder_of_owner_[i - first_] =
            std::log(capped(expected(static_cast<std::size_t>(samples_.dominant(i)))));
        if (samples_.seen_once(i)) {
            disorder_[i - first_] = disorder_of_owner_[i - first_];
            continue;
        }
        const double scale = std::min(1.0, most_weight / total);
        double rest = 1, likelihood = 0;
        for (std::size_t o = 0; o < nodes; ++o) {
            if (counts[o] == 0) continue;
            rest -= expected(o);
            likelihood += capped(expected(o)) * owned.likelihood(counts[o] * scale, total * scale);
        }
        likelihood += std::max(rest, 0.0) * owned.likelihood(0, total * scale);
        disorder_[i - first_] = std::log(likelihood);
    }
}

// ----------------------------------------------------------------------------------------------------- runs

double change_penalty(double samples, double margin) {
    return 0.5 * std::log(std::max(samples, 2.0)) + margin;
}

std::vector<Segment> segment_samples(const Evidence& evidence, double noise, NodeSet sharers) {
    const Emission emission(evidence, noise, sharers);
    const std::size_t first = evidence.first();
    const int disordered = evidence.samples().nodes() + 1;
    std::vector<Segment> found = best_segments(
        evidence.end() - first, disordered + 1, change_penalty(evidence.total_weight()), disordered,
        disordered - 1, [&](std::size_t i, Scores& gain) { emission(first + i, gain); });
    for (Segment& segment : found) {
        segment.first += first;
        segment.end += first;
    }
    return found;
}

std::vector<Segment> segment_stretch(const Samples& samples, std::size_t first, std::size_t end,
                                     double noise) {
    // The more nodes there are, the more chance makes two neighbours differ, and the more two equal ones say.
    const double margin = std::max(0.5, std::log(static_cast<double>(samples.nodes())) - 0.4);
    constexpr double least_gain = 6; // nats
    const std::size_t count = end - first;
    if (count < 2) return {};
    const double penalty = change_penalty(static_cast<double>(count), margin);
    const int disordered = samples.nodes() + 1;
    const NodeSet sharers = all_nodes(samples.nodes());
    const Evidence evidence(samples, first, end, false);
    const Emission emission(evidence, noise, sharers);
    std::vector<Segment> found =
        best_segments(count, disordered + 1, penalty, disordered, disordered + 1,
                      [&](std::size_t i, Scores& gain) { emission(first + i, gain); });
    double gain = -log_likelihood(evidence, first, end, disordered, noise, sharers);
    gain -= penalty * static_cast<double>(found.size() - 1);
    for (Segment& segment : found) {
        segment.first += first;
        segment.end += first;
        gain += log_likelihood(evidence, segment.first, segment.end, segment.state, noise, sharers);
    }
    if (gain < least_gain) found.clear();
    return found;
}

double log_likelihood(const Evidence& evidence, std::size_t first, std::size_t end, int state, double noise,
                      NodeSet sharers) {
    const Emission emission(evidence, noise, sharers);
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
    return best_segments(labels.size(), nodes, change_penalty(static_cast<double>(labels.size())), -1, nodes,
                         [&](std::size_t i, Scores& gain) {
                             std::fill_n(gain.begin(), static_cast<std::size_t>(nodes), miss);
                             gain[static_cast<std::size_t>(labels[i])] = match;
                         });
}

} // namespace homing::policy
