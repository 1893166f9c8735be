// Which granules are armed when, and how many: windows may take a small share of the run only.
//
// All granules that are asked for in the areas stand in one shuffled list. Where windows outlast their
// regions, the next few are armed whenever there is time for them and not too many wait for a touch already
// (add). Where a window ends with its region, each region takes the next few that it is known to touch
// (choose): a sample is of pairs (page, region) then, and what a page's counters hold after an iteration is
// a fair draw of who touched it first in its regions.
#pragma once

#include "areas/watch.hpp"
#include "sources/region_table.hpp"
#include "sources/windows.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace homing {

/// What arming a granule costs until it was measured here, and a fault (with its unprotecting) in arms of a
/// single thread: giving access back needs no word to other processors, which is what makes arming dear in a
/// team.
inline constexpr double usual_arm_cost = 5e-6;
inline constexpr double fault_in_arms = 2;

/// What something takes that is done again and again, in seconds: a running mean. What is much above the
/// least of late was held up by something else, and counts for twice that least.
class Price {
  public:
    void set(double seconds) noexcept { value_ = seconds; }
    void saw(double seconds) noexcept {
        recent_[seen_++ % recent_.size()] = seconds;
        const auto end = recent_.begin() + static_cast<std::ptrdiff_t>(std::min(seen_, recent_.size()));
        value_ += (std::min(seconds, 2 * *std::min_element(recent_.begin(), end)) - value_) / 4;
    }
    double value() const noexcept { return value_; }

  private:
    std::array<double, 8> recent_{};
    std::size_t seen_ = 0;
    double value_ = 0;
};

/// Which region runs: its function, and where in the iteration, if that is known.
struct Site {
    std::uint32_t region = 0;
    std::uint32_t place = PlaceTable::nowhere;
    bool placed() const noexcept { return place != PlaceTable::nowhere; }
    /// Of serial code, and where it is not known what ran.
    static constexpr Site outside() noexcept { return {~std::uint32_t{0}, PlaceTable::nowhere}; }
};

class WindowPlan {
  public:
    WindowPlan(double share, std::uint64_t seed) : share_(share), random_(seed | 1) {
        calibrate(usual_arm_cost);
    }

    /// Collect what the areas want to have sampled (WatchedArea::pending) into the shuffled list.
    void gather(WatchList& watch);
    /// Granules for a region about to begin, ascending. `seconds` is what the region took so far on average,
    /// 0 for one that is entered for the first time; `elapsed` the time for which the process has run.
    const std::vector<Range>& choose(Site site, double seconds, double elapsed);
    /// Of those only the granules for which `keep` holds are armed.
    template <class Keep> const std::vector<Range>& filter(Keep&& keep) {
        std::erase_if(chosen_, [&](const Entry& entry) { return !keep(entry.granule); });
        return collect();
    }
    /// Granules to be armed beside `standing` ones that wait for their touch already, ascending: none that
    /// is armed. `elapsed`: the time for which the process has run.
    template <class IsArmed>
    const std::vector<Range>& add(double elapsed, std::size_t standing, IsArmed&& is_armed) {
        begin_adding(elapsed, standing);
        for (std::size_t looked = 0; looked < turns_.size() && chosen_.size() < room_; ++looked) {
            if (cursor_ == turns_.size()) cursor_ = 0;
            add_run(turns_[cursor_++], is_armed);
        }
        return end_adding(elapsed);
    }
    /// What one granule takes here where one thread runs, in seconds: arming it, the fault of its touch, and
    /// of that what our handler takes. Before the first window.
    /// `slowness`: how much longer homing's work takes than on the machine whose costs are stated.
    void calibrate(double arming, double fault = 0, double handler = 0, double slowness = 1) noexcept;
    /// The program does something new (see Engine::another_iteration): observation may take as much anew as
    /// at the program's begin, if the run has lasted long enough for it.
    void begin_anew(double elapsed) noexcept;
    /// All that windows took so far, and the granules that still wait for a touch.
    void paid(const Windows::Costs& costs, std::size_t standing) noexcept;
    /// Choosing what to arm took so long, or opening the window, beside arming: it is paid for as arming is.
    void planned(double seconds) noexcept { pay(choosing_, seconds); }
    void opened(double seconds) noexcept { pay(opening_, seconds); }
    /// A region took so long, whether or not a window was open.
    void region_ended(double seconds) noexcept { last_ = seconds; }
    /// After the region, which took so long: what was touched, of what was armed for it and before.
    void observed(WatchList& watch, Site site, const std::vector<Reference>& references, double seconds);
    /// What was touched outside of regions.
    void observed_between(WatchList& watch, const std::vector<Reference>& references);

    /// Share of an area's granules that were armed for a region which it touched; 0 where none was armed.
    double touch_estimate(std::uint32_t region, std::uint32_t area) const;
    double spent() const noexcept { return spent_; }
    /// Seconds that one touch costs: arming a granule, and its fault.
    double touch_cost() const noexcept { return each(); }
    /// Seconds that faults of armed granules have cost the program's threads so far.
    double faults_cost() const noexcept { return faults_spent_; }
    bool empty() const noexcept { return entries_.empty(); }

  private:
    static constexpr std::uint32_t parts = 16;  ///< of an area
    static constexpr std::uint32_t pieces = 64; ///< of an area: the parts, cut finer
    static_assert(pieces % parts == 0);
    static constexpr std::uint32_t all_pieces = ~std::uint32_t{0};
    static constexpr std::uint32_t scales = 8; ///< of a region's time, in powers of 8
    static constexpr std::uint32_t all_of_part = std::uint32_t{1} << 31;
    /// Of a part: nothing was seen of it, too little, or enough (or it is not used).
    enum class Need : std::uint8_t { unseen, thin, covered };
    struct Entry {
        std::uint32_t area;
        std::uint32_t piece;
        std::uint32_t ordinal; ///< of the piece, among those that have entries
        Need need;
        Range granule;
    };
    struct Touches {
        std::uint32_t armed = 0;
        std::uint32_t touched = 0;
    };
    struct Coverage : Touches {
        std::int16_t node = -1; ///< of the first toucher
        bool mixed = false;     ///< another node touched it, too
        Need need = Need::unseen;
    };
    static std::uint64_t key(std::uint32_t region, std::uint32_t area) noexcept {
        return std::uint64_t{region} << 32 | area;
    }
    /// Regions of one function that take alike.
    static std::uint32_t kind_of(Site site, std::uint32_t scale) noexcept {
        return site.region * scales + scale;
    }
    static std::uint32_t piece_of(const WatchedArea& area, std::uint64_t granule) noexcept;
    static std::uint32_t part_of(std::uint32_t piece) noexcept { return piece / (pieces / parts); }
    Need need_of(std::uint32_t part, std::uint64_t granules) const;
    const Touches* at_place(Site site) const;
    bool too_short(double seconds);
    double fraction();
    bool happens(double probability);
    static double rate_of(const Touches& seen, double otherwise);
    double rate_of_kind(Site site, std::uint32_t scale, std::uint32_t part) const;
    double likely_at_all(Site site, const Touches* here, std::uint32_t scale) const;
    double rate(Site site, std::uint32_t piece, const Touches* here, std::uint32_t scale) const;
    std::uint32_t scale_of(double seconds) const;
    std::uint64_t random() noexcept;
    const std::vector<Range>& collect();
    void pay(Price& price, double seconds) noexcept {
        price.saw(seconds);
        spent_ += std::min(seconds, price.value());
    }
    double each() const noexcept { return arming_.value() + fault_cost(); }
    double fault_cost() const noexcept { return outside_handler_ + handler_.value(); }
    double allowance() const noexcept;
    double left_at(double elapsed) const noexcept;
    bool is_eager() const noexcept { return spent_ < eager_until_; }
    void begin_adding(double elapsed, std::size_t standing);
    const std::vector<Range>& end_adding(double elapsed);
    std::size_t room_beside(std::size_t standing) const noexcept;
    double wanted_of(const Entry& entry) const;
    void cover(WatchedArea& area, std::uint64_t granule, int node);
    /// The granule whose turn it is, and its neighbours that are asked for, too: one call arms them all.
    template <class IsArmed> void add_run(std::uint32_t at, IsArmed& is_armed) {
        constexpr std::size_t longest_run = 8;
        if (!happens(wanted_of(entries_[at]))) return;
        for (std::size_t run = 0; run < longest_run && chosen_.size() < room_; ++run, ++at) {
            const Entry& entry = entries_[at];
            if (is_armed(entry.granule.begin)) return;
            chosen_.push_back(entry);
            if (at + 1 == entries_.size() || entries_[at + 1].granule.begin != entry.granule.end) return;
        }
    }

    double share_;
    Price arming_;               ///< a granule
    Price choosing_;             ///< what a window is to arm
    Price opening_;              ///< a window, beside arming: whether it may be is looked at
    Price handler_;              ///< a touch, in our handler ...
    double outside_handler_ = 0; ///< ... and in the kernel, on the way there and back
    Windows::Costs paid_;
    double useful_ = 0; ///< armed granules that were touched ...
    double wasted_ = 0; ///< ... and that were given back: of late
    std::size_t stood_ = 0;
    std::size_t room_ = 0;
    double added_at_ = -1;  ///< the first ones need not wait
    double first_cost_ = 0; ///< of a reference, where one thread runs
    double slowness_ = 1;   ///< see calibrate()
    std::uint64_t random_;
    double spent_ = 0;
    double allowed_ = 0;     ///< beside the share of the run time, so far
    double eager_until_ = 0; ///< what may be spent eagerly
    double faults_spent_ = 0;
    std::size_t cursor_ = 0;
    std::size_t areas_ = 0;            ///< that have entries
    double bytes_ = 0;                 ///< of the areas that have entries
    double longest_ = 0;               ///< seconds of the longest region that touched much of what was armed
    double last_ = 0;                  ///< seconds of the newest region
    double passed_over_ = 0;           ///< seconds of regions too short for a window, since the last window
    double turn_of_ = 0;               ///< the same, of those whose turn the newest window is
    double speed_ = 0;                 ///< bytes of the areas that it went through in a second
    bool lacking_ = false;             ///< some entries are of parts that lack samples
    std::vector<Entry> entries_;       ///< ascending by address
    std::vector<std::uint32_t> turns_; ///< of them, shuffled
    std::vector<double> rates_;        ///< by a piece's ordinal, in choose(); negative: not known yet
    std::vector<Entry> chosen_;
    std::vector<Range> ranges_;
    std::unordered_map<std::uint64_t, Touches> touches_; ///< by region and area
    std::unordered_map<std::uint64_t, Touches> parts_;  ///< by region, its scale, and part of an area, or all
    std::unordered_map<std::uint64_t, Touches> placed_; ///< by place and piece or part of an area, or all
    std::unordered_map<std::uint32_t, Coverage> coverage_; ///< by part of an area, in all regions
    /// By area: how many of its granules were armed since its newest touch.
    std::unordered_map<std::uint32_t, std::uint32_t> unused_;
};

} // namespace homing
