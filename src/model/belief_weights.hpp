// How Belief weighs its hypotheses: shared by the files that implement it, and nobody else.
#pragma once

#include "model/belief.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

namespace homing::model {

inline constexpr double no_weight = -1e300; ///< log of zero

inline double log_of(double value) { return value > 0 ? std::log(value) : no_weight; }

/// A formula that is being weighed: log joint probability with the touches, by (reach, stray).
struct Belief::Candidate {
    std::size_t index;
    const Formula* formula; ///< of the table, or of Joint::refined
    std::array<float, tuning::nuisances> log;
    float best = 0;   ///< of log
    double share = 0; ///< of the posterior, as long as it is normalised
    void find_best() { best = *std::ranges::max_element(log); }
};

/// Log weights of all hypotheses, before they are normalised.
struct Belief::Joint {
    std::vector<double> positions; ///< of the touches
    /// Log of the probability of a touch within a page that the one before its owner begins: where threads
    /// sweep, that one is seen as often.
    double in_cut_page = 0;
    std::vector<Candidate> candidates;
    std::deque<Formula> refined;
    std::vector<double> runs, even, urns; ///< beside runs_, even_ and urns_
    double none = no_weight;
    std::array<double, tuning::strays.size()> home{no_weight, no_weight, no_weight, no_weight};

    /// Of all that was weighed so far.
    double best() const {
        double best = std::max(none, *std::ranges::max_element(home));
        for (const Candidate& candidate : candidates)
            best = std::max(best, static_cast<double>(candidate.best));
        for (const std::vector<double>* logs : {&runs, &even, &urns})
            for (const double log : *logs)
                best = std::max(best, log);
        return best;
    }
};

} // namespace homing::model
