// Cuts a sequence of samples into runs by penalised maximum likelihood (exact dynamic programming over the
// samples). Used by ownership.cpp for an area and by cycle_search.cpp for the circle of a folded period.
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
double change_penalty(std::size_t samples, double margin = 4.0);

// States 0..N+1. `sharers`: the nodes that shared pages are expected to be touched by (all, where not known).
std::vector<Segment> segment_samples(const Samples& samples, double noise, NodeSet sharers);

// The same of samples [first, end) alone, by a penalty that fits so few: a stretch that the whole area's
// penalty leaves disordered may be an array of its own within the area (the coarse grids behind a fine one),
// with short blocks. Empty where blocks do not tell it better than disorder does: of random owners, 2 % pass
// at the most (tests/unit/test_policy_ownership.cpp).
std::vector<Segment> segment_stretch(const Samples& samples, std::size_t first, std::size_t end,
                                     double noise);

// Log-likelihood of samples [first, end) under one state.
double log_likelihood(const Samples& samples, std::size_t first, std::size_t end, int state, double noise,
                      NodeSet sharers);

// Owner states only, of plain labels (each a node).
std::vector<Segment> segment_labels(std::span<const Node> labels, int nodes, double noise);

} // namespace homing::policy
