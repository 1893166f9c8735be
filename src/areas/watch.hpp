// The list of the areas that are watched: adopted from the registry, the mappings and the ELF symbols.
// Engine's thread only.
#pragma once

#include "areas/area_filter.hpp"
#include "areas/area_rows.hpp"
#include "areas/areas.hpp"
#include "areas/arenas.hpp"
#include "areas/mapped.hpp"
#include "areas/watched_area.hpp"
#include "areas/watched_range.hpp"
#include "kernel/node_map.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace homing {

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
    /// The program may give its threads stacks for signals by calls that no hook sees: they may lie in small
    /// blocks and in what it maps, of which no page is armed from the next synchronise() on. A fault that the
    /// kernel cannot report there would end the process. False: that was said before.
    bool leave_room_for_stacks() noexcept;
    /// At the end of the process: of areas that did not come back the record says when they ended.
    void record_ends();
    /// The same of one that is still an area, but has given back what it told of.
    void record_end(WatchedArea& area, double now);
    /// The program does something else: all areas are to be asked, whatever they seem to be.
    void doubt_all() noexcept {
        for (const auto& area : areas_)
            area->learnt.doubt();
    }
    /// The same, because it has gone on to regions that were never seen.
    void begin_phase() noexcept {
        doubt_all();
        for (const Areas* areas : {&areas_, &parked_})
            for (const auto& area : *areas)
                area->learnt.begin_phase();
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
    /// Bytes that existed of areas that went since `time`: temporaries of the iteration that began then. What
    /// lay at the same addresses counts once.
    std::uint64_t bytes_gone_since(double time) const;
    /// The rules of --areas, and what they met so far.
    const std::vector<AreaFilter::Rule>& rules() const noexcept { return filter_.rules(); }
    /// Where an address of code lies, as rows have it; its object gets a row of its own at the first time.
    ObjectPlace recorded_place(Address address) { return rows_.place(address); }
    const std::string& symbol(Address address) { return rows_.symbol(address); }

    std::vector<std::unique_ptr<WatchedArea>>& areas() noexcept { return areas_; }
    const std::vector<std::unique_ptr<WatchedArea>>& areas() const noexcept { return areas_; }
    std::span<const WatchedRange> ranges() const noexcept { return ranges_; }

  private:
    void adopt(BlockGroup&& group, double now);
    std::vector<AreaEntry> entries_now(bool all);
    void add_arenas(std::vector<AreaEntry>& entries);
    void add_mappings(std::vector<AreaEntry>& entries) const;
    void leave(std::span<const MappedMemory::Gone> gone) const;
    void tell_hot_from_cold();
    void rename(WatchedArea& area, const AreaEntry& entry, double now);
    using Areas = std::vector<std::unique_ptr<WatchedArea>>;
    bool adopt_or_return(std::vector<BlockGroup> fresh, Areas gone, double now);
    void come_back(std::unique_ptr<WatchedArea> area, BlockGroup group, double now);
    void park(Areas gone, double now);
    void inherit(const Areas& gone, std::size_t first_new);
    void forget_parked(double now);
    template <class Visit> void each_in_arena(std::span<const Range> granules, Visit&& visit) const;
    void refresh_armable();

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
    AreaRows rows_;
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
