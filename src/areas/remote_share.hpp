// What the estimate of an area's remote share rests on: touches that were seen over the whole run, and where
// the touched granules were before homing moved any of them. The same touches are held against both
// placements, with the same weights, so that the two ends differ by what moved and by nothing else. (The
// touches of one iteration against those of another would not do: each round samples other areas and other
// parts of them.)
//
// Windows and hint faults choose places, and not evenly: borders and suspects are looked at more often. So a
// granule stands for the granules up to half-way to its neighbours in the sample, whatever the number of its
// touches, and an area for its traffic (Engine::traffic). A PMU and the simulator choose accesses: there
// each counts as one.
//
// What is left here are sums; the estimate with its interval is homing/report/remote.py.
#pragma once

#include "areas/counters.hpp"
#include "areas/granule_homes.hpp"
#include "areas/page_set.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace homing {

/// Over the sampled granules g of an area whose home is known: w(g) the granules (or accesses) that g stands
/// for, r(g) the share of its touches that came from another node than its home.
struct RemoteSums {
    std::uint64_t granules = 0; ///< sampled
    double touches = 0;         ///< of these granules
    double weight = 0;          ///< sum of w
    double weight2 = 0;         ///< of w^2
    struct End {
        double share = 0;  ///< of w r
        double share1 = 0; ///< of w^2 r
        double share2 = 0; ///< of w^2 r^2
    };
    End before; ///< with the granules where they were before homing moved them
    End after;  ///< with the granules where they are
};

class RemoteShare {
  public:
    /// Granules kept of one area. 1,024 of them, whose weights scatter like the distances of random points,
    /// are worth some 680 of equal weight: 95 % of estimates are within 4 % of the truth.
    static constexpr std::size_t most_granules = 1024;

    /// Begin anew, in an area of so many granules.
    void reset(std::uint64_t granules, int nodes, std::uint64_t seed);

    /// A thread on the node at `position` touched a granule; `accesses`: that this stands for.
    void touched(std::uint64_t granule, int position, std::uint32_t accesses);
    /// homing moved granules [first, end) away from the node at `position`. Where they were first counts.
    void moved_from(std::uint64_t first, std::uint64_t end, int position) {
        origins_.set_unknown(first, end, position);
        news_ = true;
    }

    bool empty() const noexcept { return counters_.empty(); }
    /// Touches of all granules, of those that are not kept, too.
    std::uint64_t accesses() const noexcept;
    /// Has so much changed since the last sums() that they should be taken again? Since pages moved, or the
    /// touches doubled.
    bool has_news() const noexcept { return !empty() && (news_ || accesses() >= 2 * told_); }

    /// The granules that are kept, ascending.
    std::vector<std::uint64_t> granules();
    /// homes: of granules(), in their order: position of the node, or -1. there: the granules that exist.
    /// by_access: the touches are a sample of accesses, not of places.
    RemoteSums sums(std::span<const int> homes, const PageSet& there, bool by_access);

  private:
    ReferenceCounters counters_;
    GranuleHomes origins_;
    std::uint64_t told_ = 0; ///< accesses() at the last sums()
    bool news_ = false;
};

} // namespace homing
