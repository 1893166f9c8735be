// What an area's references teach: samples of one round, merged into what is believed of its owners, and what
// arrays of the same size tell of each other.
#pragma once

#include "mechanisms/watch.hpp"
#include "policy/ownership.hpp"

#include <span>
#include <vector>

namespace homing {

/// Samples of an area before anything is inferred for all of it.
inline constexpr std::size_t enough_samples = 40;

/// All that the counters hold, settled.
policy::Samples samples_of(ReferenceCounters& counters);

/// An area, the samples that a round brought of it, and whether they contradict what was believed.
struct Learnt {
    WatchedArea* area;
    policy::Samples fresh;
    bool changed = false;
};

class Learner {
  public:
    /// Before a decision: the areas of which something was seen, now or before.
    void gather(const WatchList& watch);
    /// Takes the new samples of an area in. With `check` nothing is learnt unless they contradict the belief.
    Learnt learn(WatchedArea& area, bool check) const;
    /// Once all have learnt: near borders a neighbour's reads are told from the owner's touches, by writes or
    /// by another array of the size, and arrays that are used alike share their samples: those of one size,
    /// and those of as many elements of another size (a sparse matrix' values and column indices).
    void refine(WatchedArea& area) const;

  private:
    std::span<WatchedArea* const> of_size(const WatchedArea& area) const;
    const WatchedArea* written_sibling(const WatchedArea& area) const;
    std::span<WatchedArea* const> of_scaled_size(const WatchedArea& area, int doublings) const;
    policy::Samples shown_by_twin(const WatchedArea& area, const policy::Samples& samples) const;

    std::vector<WatchedArea*> known_; ///< by size
};

} // namespace homing
