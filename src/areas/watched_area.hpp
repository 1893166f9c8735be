// An area that is watched: which memory it is, in granules, and all that is known of it. Engine's thread
// only.
#pragma once

#include "areas/area_belief.hpp"
#include "areas/block_groups.hpp"
#include "areas/page_set.hpp"
#include "areas/refused_pages.hpp"
#include "areas/remote_share.hpp"
#include "areas/seen_homes.hpp"
#include "kernel/mover.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace homing {

struct WatchedArea final : MovableMemory {
    std::uint32_t id = 0;
    BlockGroup group;        ///< what it consists of
    Range range;             ///< base pages of which the area has most; those at its ends are never armed
    std::size_t granule = 0; ///< bytes: a base page, or a huge one where the area lies on such, once seen
    Address origin = 0;      ///< address where granule 0 begins (may lie before range on huge pages)
    std::uint64_t granules = 0;
    std::string name;
    PageSet own;                        ///< its granules: all of them
    bool seen = false;                  ///< something of it exists (Survey)
    bool in_part = false;               ///< not all of it does: there() is what does, as far as is known
    double share_there = 1;             ///< of what is drawn from there, so much existed lately
    int trust = 0;                      ///< after a draw of which all existed, so many are not looked at ...
    int trusted = 0;                    ///< ... of which so many are to come
    PageSet exists;                     ///< there()
    AreaBelief learnt;                  ///< of its owners
    RemoteShare remote_share;           ///< of the whole run, for the report
    SeenHomes seen_homes;               ///< of granules that are base pages
    RefusedPages refused;               ///< granules that the kernel would not move
    std::vector<std::uint64_t> pending; ///< granules to be asked for in this round
    bool chosen = false;                ///< ... since it came, or grew
    std::vector<Range>
        armable; ///< parts that may be protected (private, read-write, and of its blocks alone)
    std::uint64_t found_granules = 0;  ///< existed when the record was told where they were found; 0: not yet
    int initial_looks = 0;             ///< at what of it was to be placed initially (InitialPlacement)
    std::uint32_t initial_next = 0;    ///< iteration of the next one
    std::vector<bool> initially_dealt; ///< granules that were placed at random
    std::uint64_t references = 0;      ///< seen so far
    double touches_in_iteration = 1;   ///< of each of its granules
    std::uint64_t remote_misses = 0;   ///< since the last decision, by a source that counts misses
    std::uint64_t next_to_move =
        0;                ///< the first existing page behind those that the last pause for moving did
    bool waiting = false; ///< for the guard, or for time to move: what is misplaced costs on, seen or not
    bool bound = false;   ///< to nodes, by the program
    bool cold = false;    ///< the program has named other memory as hot
    bool worth_nothing = false; ///< what is misplaced of it costs nothing where it is
    bool sent_home = false;     ///< its pages are where homing put them, no longer where the program did
    std::uint64_t shown = 0; ///< granules that were known when a scan last showed something new (ScanRounds)
    std::uint64_t passed_by = 0; ///< references since then to what was known, of all areas
    double parked_since = 0;     ///< when its memory went; and whether the record was told that it ended
    bool end_recorded = false;
    /// Of memory that comes again and again: when its pages are looked at next, and how long after (seconds).
    double next_plan_look = 0, plan_wait = 0;

    /// The same array in other memory: what was learnt of its parts stays, what is true of pages only does
    /// not.
    void move_to(BlockGroup group, Range pages);
    /// Number the granules of `range`, from now on of so many bytes. Whatever goes by their numbers begins
    /// anew. nodes, seed: of the sample that the remote share rests on.
    void number_granules(std::size_t bytes, int nodes, std::uint64_t seed);
    /// Where the granules of its fresh touches lie.
    void find_homes_of_fresh(Mover& mover);
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
    const PageSet& there() const noexcept { return exists; }
    std::uint64_t used_bytes() const noexcept {
        const double granules_there = share_there * static_cast<double>(there().size());
        return std::min(static_cast<std::uint64_t>(granules_there * static_cast<double>(granule)),
                        range.bytes());
    }
    /// Its pages are not to move.
    bool left_alone() const noexcept { return bound || cold; }
    /// May this granule be protected as a whole?
    bool is_armable(std::uint64_t index) const noexcept;
};

} // namespace homing
