// Which parts of the watched areas exist. Programs allocate more than they use: arrays dimensioned to a
// maximum, pools, workspaces. What was never touched is on no node, and samples of it are spent in vain; a
// quarter of a large array in which they all fall is soon known.
//
// An area is looked at until something of it exists: only then can it be told whether it lies on huge pages.
// Where some probes say that all of it does, that was all. Otherwise it is cut into cells, those in which
// anything exists into finer ones, until what is used is known to a sixty-fourth or so: some thousand probes,
// some milliseconds, however large the area is. Such areas are looked at again, because programs go on to use
// more.
//
// Engine's thread only. Times are seconds.
#pragma once

#include "areas/watch.hpp"
#include "kernel/kernel.hpp"

#include <cstdint>
#include <vector>

namespace homing {

class Survey {
  public:
    Survey(Kernel& kernel, std::uint64_t seed) noexcept : kernel_(kernel), random_(seed | 1) {}

    /// Where it is time again: looks at areas of which nothing was seen yet, and at some that exist in part,
    /// by turns. Returns whether there is more to sample than before.
    bool look(WatchList& watch);
    /// Looks at all areas of which nothing was seen yet, whether it is time or not.
    void look_at_all(WatchList& watch);
    /// Are there areas of which nothing was seen yet, and was it not time for a look since then?
    bool may_have_missed(const WatchList& watch, double since) const;
    /// References say that this area exists, of which nothing was seen yet.
    void look_at(WatchList& watch, WatchedArea& area);

    /// Takes out of these granules of an area those that do not exist, where some do not.
    void keep_existing(WatchedArea& area, std::vector<std::uint64_t>& granules);

  private:
    bool is_time(const WatchList& watch);
    bool look_at_unseen(WatchList& watch, std::size_t most);
    bool look_at_parts(WatchList& watch);
    void take(WatchedArea& area, PageSet there);
    double share_of_existing(const WatchedArea& area);
    PageSet map(const WatchedArea& area);
    PageSet existing(const WatchedArea& area, const std::vector<policy::PageRange>& cells);
    void probe(const std::vector<Address>& pages);
    void probe_evenly(const WatchedArea& area, const PageSet& granules, std::uint64_t count);
    std::uint64_t random() noexcept;

    Kernel& kernel_;
    std::uint64_t random_;
    double next_ = 0;                  ///< when it is time again, ...
    double glance_ = 0;                ///< ... unless page faults say so before, for which it is time then
    std::uint64_t faults_ = 0;         ///< of the process, at the newest look
    std::uint64_t faults_to_look_ = 1; ///< since then, that make another one worth while
    double looked_ = 0;                ///< when that was last
    double learning_ = 0;              ///< seconds of the newest look that were not in vain
    double in_vain_ = 0;               ///< seconds of all looks that were
    std::size_t unseen_turn_ = 0;
    std::size_t part_turn_ = 0;
    std::vector<void*> pages_;
    std::vector<int> states_;
    std::vector<std::uint8_t> found_; ///< by page that was probed, or range: does it exist?
};

} // namespace homing
