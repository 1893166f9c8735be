// What an area's samples say about the pages that are not where their owners were inferred to be. An inferred
// owner speaks for all pages of a run; whether a page that lies on some node would be nearer to its users
// there, the samples on that very node tell: pages of the run that lie there and were used from there speak
// against it. So a placement that is right already is not destroyed by a pattern that is wrong, or true of
// most pages only.
#pragma once

#include "mechanisms/watch.hpp"
#include "policy/nodes.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace homing {

class Evidence {
  public:
    /// homes: of the area's telling samples, in their order: position of the node, or -1.
    Evidence(const WatchedArea& area, std::span<const int> homes);

    /// The homes from which pages of a run should go where its pattern says: what speaks for it outweighs
    /// what speaks against it. Where a good part of the run lies elsewhere, homes against which
    /// nothing speaks are among them.
    policy::NodeSet likely(std::size_t run) const;
    /// Those for which it is beyond doubt, however few pages they are: away from the run's borders, where a
    /// neighbour's halo could be the reason, several pages were used by the owner alone.
    policy::NodeSet certain(std::size_t run) const;
    /// Sample i, away from its run's borders, was used by its owner alone and lies elsewhere: whatever is
    /// true of other pages, this one is misplaced.
    bool is_stray(std::size_t i) const { return stray_[i]; }
    /// Some pages are strays, too few to tell what is true of their surroundings.
    const std::vector<std::uint64_t>& doubtful() const { return doubtful_; }

  private:
    struct Count {
        double support = 0;                ///< granules for which samples stand that were used by the owner
        double oppose = 0;                 ///< and by the node that they lie on
        double squares = 0;                ///< of these samples' weights
        std::uint32_t supporting = 0;      ///< samples
        std::uint32_t against = 0;         ///< opposing samples that no border of a block explains
        std::uint32_t inside = 0;          ///< supporting samples away from the run's borders
        std::uint32_t inside_opposing = 0; ///< samples there that were used from where they lie, too
    };
    Count& at(std::size_t run, int home) { return counts_[run * nodes_ + static_cast<std::size_t>(home)]; }
    const Count& at(std::size_t run, int home) const {
        return counts_[run * nodes_ + static_cast<std::size_t>(home)];
    }
    template <class Accepts> policy::NodeSet homes_that(std::size_t run, Accepts&& accepts) const;

    static bool outweighs_opposition(const Count& count);
    /// A good part of the run lies on nodes that it is not used from.
    bool is_scattered(std::size_t run) const;

    std::size_t nodes_;
    std::vector<Count> counts_;   ///< by run and home
    std::vector<double> weights_; ///< by run: granules for which samples stand
    std::vector<bool> stray_;     ///< by sample
    std::vector<std::uint64_t> doubtful_;
};

/// Is a granule of a run, with these uses, misplaced where it lies, whatever is true of others? It was used
/// by its owner, not from where it lies, and no halo of a neighbour can be the reason: it is away from the
/// run's borders.
bool is_stray(const policy::Ownership& ownership, std::size_t run, std::uint64_t granule,
              std::span<const std::uint16_t> uses, policy::Node home);

/// For how many granules does sample i of an area stand: half of the way to its neighbours on both sides, so
/// that borders, where samples are dense, do not weigh more than they are. In a run without a pattern a
/// sample stands for itself.
double granules_of_sample(const WatchedArea& area, std::size_t i, const policy::Run& run);

} // namespace homing
