// Cuts a sequence of samples into runs by penalised maximum likelihood (exact dynamic programming over the
// samples). Used by inference.cpp for an area and by folding.cpp for the circle of a folded period.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "policy/nodes.hpp"
#include "policy/samples.hpp"

namespace homing::policy {

// Samples [first, end) in one state: 0..N-1 owned by that node, N shared, N + 1 disordered.
struct Segment {
    std::size_t first;
    std::size_t end;
    int state;
};

// Penalty (in nats) for each change of state among so many samples: half of the logarithm of the number of
// places, as in the Bayesian information criterion, since a run that is inserted pays twice, plus a margin.
double change_penalty(double samples, double margin = 4.0);

// Consecutive samples as evidence of the runs that they lie in.
class Evidence {
  public:
    // Of samples [first, end), which must outlive it. even: samples of places where they crowd (borders that
    // are refined, clusters) weigh less than those of other places. O(S N).
    Evidence(const Samples& samples, std::size_t first, std::size_t end, bool even);

    const Samples& samples() const { return samples_; }
    std::size_t first() const { return first_; }
    std::size_t end() const { return end_; }
    // Of a sample, in (0, 1]; and how many samples of weight 1 all together are.
    double weight(std::size_t index) const { return weight_[index - first_]; }
    double total_weight() const { return total_weight_; }
    // The part of an equal share of the pages that a sample stands for, in (0, 1].
    double spread(std::size_t index) const { return spread_[index - first_]; }
    // Log-likelihood of a sample where there is disorder: its owner is drawn from those of the samples around
    // it, itself left out. Of all its touches, and of its dominant node alone.
    double disorder(std::size_t index) const { return disorder_[index - first_]; }
    double disorder_of_owner(std::size_t index) const { return disorder_of_owner_[index - first_]; }

  private:
    void weigh_evenly();
    void find_disorder(double prior);

    const Samples& samples_;
    std::size_t first_, end_;
    double total_weight_;
    std::vector<double> weight_, spread_, disorder_, disorder_of_owner_;
};

// States 0..N+1. `sharers`: the nodes that shared pages are expected to be touched by (all, where not known).
std::vector<Segment> segment_samples(const Evidence& evidence, double noise, NodeSet sharers);

// The same of samples [first, end) alone, by a penalty that fits so few: a stretch that the whole area's
// penalty leaves disordered may be an array of its own within the area (the coarse grids behind a fine one),
// with short blocks. Empty where blocks do not tell it better than disorder does: of random owners, 2 % pass
// at the most (tests/unit/test_policy_ownership.cpp).
std::vector<Segment> segment_stretch(const Samples& samples, std::size_t first, std::size_t end,
                                     double noise);

// Weighted log-likelihood of samples [first, end) under one state.
double log_likelihood(const Evidence& evidence, std::size_t first, std::size_t end, int state, double noise,
                      NodeSet sharers);

// Owner states only, of plain labels (each a node).
std::vector<Segment> segment_labels(std::span<const Node> labels, int nodes, double noise);

} // namespace homing::policy
