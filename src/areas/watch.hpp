// The areas that are watched: adopted from the registry and the ELF symbols, each with its sample, its
// counters, and what is believed about its owners. Engine's thread only.
#pragma once

#include "areas/area_belief.hpp"
#include "areas/area_filter.hpp"
#include "areas/areas.hpp"
#include "areas/arenas.hpp"
#include "areas/block_groups.hpp"
#include "areas/code_places.hpp"
#include "areas/mapped.hpp"
#include "areas/refused_pages.hpp"
#include "areas/remote_share.hpp"
#include "areas/seen_homes.hpp"
#include "areas/watched_range.hpp"
#include "kernel/mover.hpp"
#include "kernel/node_map.hpp"
#include "model/page_set.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace homing {

struct WatchedArea final : MovableMemory {
    std::uint32_t id = 0;
    BlockGroup group;        ///< what it consists of
    Range range;             ///< whole base pages inside the area
    std::size_t granule = 0; ///< bytes: a base page, or a huge one where the area lies on such, once seen
    Address origin = 0;      ///< address where granule 0 begins (may lie before range on huge pages)
    std::uint64_t granules = 0;
    std::string name;
    policy::PageSet own;                ///< its granules: all of them
    bool seen = false;                  ///< something of it exists (Survey)
    bool in_part = false;               ///< not all of it does: there() is what does, as far as is known
    double share_there = 1;             ///< of what is drawn from there, so much existed lately
    int trust = 0;                      ///< after a draw of which all existed, so many are not looked at ...
    int trusted = 0;                    ///< ... of which so many are to come
    policy::PageSet exists;             ///< there()
    AreaBelief learnt;                  ///< of its owners
    RemoteShare remote_share;           ///< of the whole run, for the report
    SeenHomes seen_homes;               ///< of granules that are base pages
    RefusedPages refused;               ///< granules that the kernel would not move
    std::vector<std::uint64_t> pending; ///< granules to be asked for in this round
    std::vector<Range>
        armable; ///< parts that may be protected (private, read-write, and of its blocks alone)
    bool found_recorded = false;
    int initial_looks = 0;             ///< at what of it was to be placed initially (InitialPlacement)
    std::uint32_t initial_next = 0;    ///< iteration of the next one
    std::vector<bool> initially_dealt; ///< granules that were placed at random
    std::uint64_t references = 0;      ///< seen so far
    double touches_in_iteration = 1;   ///< of each of its granules
    std::uint64_t remote_misses = 0;   ///< since the last decision, by a source that counts misses
    bool waiting = false;    ///< for the guard, or for time to move: what is misplaced costs on, seen or not
    bool left_alone = false; ///< the program itself bound it to nodes
    bool worth_nothing = false; ///< what is misplaced of it costs nothing where it is
    bool sent_home = false;     ///< its pages are where homing put them, no longer where the program did
    std::uint64_t shown = 0; ///< granules that were known when a scan last showed something new (ScanRounds)
    std::uint64_t passed_by = 0; ///< references since then to what was known, of all areas
    double parked_since = 0;     ///< when its memory went; and whether the record was told that it ended
    bool end_recorded = false;
    std::uint32_t returns = 0; ///< how often its memory went and came again (WatchList::returned)

    /// The same array in other memory: what was learnt of its parts stays, what is true of pages only does
    /// not.
    void move_to(BlockGroup group, Range pages);
    Range granule_range(std::uint64_t index) const noexcept override;
    std::size_t granule_bytes() const noexcept override { return granule; }
    int seen_home(std::uint64_t index) const noexcept override { return seen_homes.home(index); }
    void lies_at(policy::PageRange run, int position) override {
        seen_homes.saw(run.first, run.end, position);
    }
    void forget_homes() noexcept override { seen_homes.forget(); }
    void moved_from(policy::PageRange run, policy::Node from) override {
        remote_share.moved_from(run.first, run.end, from);
        learnt.sent_away(run.first, run.end, from);
    }
    bool was_refused(std::uint64_t index, std::uint32_t round, int error) override {
        return refused.refused(index, round, error);
    }
    void forget_refusal(std::uint64_t index) noexcept override { refused.forget(index); }
    std::uint64_t granule_of(Address address) const noexcept { return (address - origin) / granule; }
    /// How far into its granule a byte lies, in granules: below 1, although a float is coarse.
    float within_granule(Address address) const noexcept {
        constexpr float below_one = 1 - std::numeric_limits<float>::epsilon();
        return std::min(below_one,
                        static_cast<float>((address - origin) % granule) / static_cast<float>(granule));
    }
    std::uint64_t base_pages() const noexcept { return range.bytes() / page_bytes(); }
    /// What of it exists, as far as is known: granules, and bytes.
    const policy::PageSet& there() const noexcept { return exists; }
    std::uint64_t used_bytes() const noexcept {
        const double granules_there = share_there * static_cast<double>(there().size());
        return std::min(static_cast<std::uint64_t>(granules_there * static_cast<double>(granule)),
                        range.bytes());
    }
    /// May this granule be protected as a whole?
    bool is_armable(std::uint64_t index) const noexcept;
};

/// Memory of the program that is not watched because the user said so.
struct LeftOut {
    Range range;
    std::string reason; ///< which option, and the name
};

class WatchList {
  public:
    WatchList(const NodeMap& nodes, std::uint64_t seed);

    /// Bring the list up to date with the program; returns whether it changed. Cheap when nothing did.
    bool synchronise(double now);
    /// Is it still up to date?
    bool synchronised() const noexcept;
    /// Takes out of these granules (ascending) those in the allocator's memory that no longer lie within live
    /// blocks: the allocator may give them back to the kernel.
    void keep_covered(std::vector<Range>& granules) const;
    /// Do all of these granules (ascending) that are in the allocator's memory lie within live blocks?
    bool all_covered(std::span<const Range> granules) const;
    /// An area exists, which can be told to lie on huge pages only now: from here on it has the granule that
    /// goes with it. Where that is another one, all that was known of the area by the old one is forgotten.
    void decide_granule(WatchedArea& area);
    /// The program may give its threads stacks for signals by calls that no door sees: they may lie in small
    /// blocks and in what it maps, of which no page is armed from the next synchronise() on. A fault that the
    /// kernel cannot report there would end the process. False: that was said before.
    bool leave_room_for_stacks() noexcept;
    /// At the end of the process: of areas that did not come back the record says when they ended.
    void record_ends();
    /// The program does something else: all areas are to be asked, whatever they seem to be.
    void doubt_all() noexcept {
        for (const auto& area : areas_)
            area->learnt.ignorance = 1;
    }
    /// The same, because it has gone on to regions that were never seen.
    void begin_phase() noexcept {
        doubt_all();
        for (const Areas* areas : {&areas_, &parked_})
            for (const auto& area : *areas)
                area->learnt.touches.begin_phase(area->learnt.fresh.size());
    }
    /// The area that an address lies in, or null.
    WatchedArea* find(Address address) noexcept;

    /// `leave` is told of parts of areas that the program has unmapped or protected itself: nothing of ours
    /// may stand in its way there.
    void leave_to_the_program(std::function<void(Range)> leave) { leave_ = std::move(leave); }

    /// What there is now of what the user left out, of unwatched_minimum bytes or more in all of one name.
    std::vector<LeftOut> left_out();
    /// Areas that ended and began again at the last change (synchronise): what was learnt of them holds, but
    /// their memory is new. Whoever knows where its pages should be may place them now, before they are
    /// touched.
    std::span<WatchedArea* const> returned() const noexcept { return returned_; }
    /// The rules of --areas, and what they met so far.
    const std::vector<AreaFilter::Rule>& rules() const noexcept { return filter_.rules(); }
    /// Where an address of code lies, as rows have it; its object gets a row of its own at the first time.
    ObjectPlace recorded_place(Address address);
    const std::string& symbol(Address address) { return places_.symbol(address); }

    std::vector<std::unique_ptr<WatchedArea>>& areas() noexcept { return areas_; }
    const std::vector<std::unique_ptr<WatchedArea>>& areas() const noexcept { return areas_; }
    std::span<const WatchedRange> ranges() const noexcept { return ranges_; }

  private:
    void adopt(BlockGroup&& group, double now);
    std::vector<AreaEntry> entries_now(bool all);
    void add_arenas(std::vector<AreaEntry>& entries);
    void add_mappings(std::vector<AreaEntry>& entries) const;
    void leave(std::span<const MappedMemory::Gone> gone) const;
    using Areas = std::vector<std::unique_ptr<WatchedArea>>;
    bool adopt_or_return(std::vector<BlockGroup> fresh, Areas gone, double now);
    void come_back(std::unique_ptr<WatchedArea> area, BlockGroup group, double now);
    void park(Areas gone, double now);
    void inherit(const Areas& gone, std::size_t first_new);
    void forget_parked(double now);
    template <class Visit> void each_in_arena(std::span<const Range> granules, Visit&& visit) const;
    void end_area(const WatchedArea& area, double now) const;
    void lay_out(WatchedArea& area, std::size_t granule) const;
    void refresh_armable();
    void record(const WatchedArea& area, double now);
    void record_frames(const WatchedArea& area);
    std::string name_of(const AreaEntry& entry);
    std::string heap_name(const AreaEntry& entry);
    std::vector<AreaPlace> places_of(const AreaEntry& entry);

    const NodeMap& nodes_;
    std::uint64_t seed_;
    std::function<void(Range)> leave_;
    AreaFilter filter_;
    Arenas arenas_{block_cover()};
    double next_arenas_ = 0; ///< when it is time for another look
    MappedMemory mapped_{mapping_log()};
    /// Areas whose memory went, and may be allocated anew by the same place; the newest at the end.
    Areas parked_;
    std::vector<WatchedArea*> returned_;
    CodePlaces places_;
    std::set<const LoadedFile*> recorded_files_;
    std::size_t minimum_;
    std::uint64_t seen_changes_ = ~std::uint64_t{0};
    std::uint64_t seen_objects_ = 0;
    std::uint64_t seen_names_ = 0;
    bool unseen_stacks_ = false, stacks_are_news_ = false; ///< leave_room_for_stacks()
    std::uint32_t next_id_ = 0;
    std::vector<AreaEntry> statics_;
    std::vector<Address> known_objects_;
    std::vector<std::unique_ptr<WatchedArea>> areas_; ///< ascending by address
    std::vector<WatchedRange> ranges_;
};

} // namespace homing
