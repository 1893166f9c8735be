#include "areas/watch.hpp"

#include "areas/allocation_plans.hpp"
#include "areas/named.hpp"
#include "areas/protection.hpp"
#include "base/find_range.hpp"
#include "base/options.hpp"
#include "base/running_time.hpp"
#include "machine/simulation.hpp"
#include "model/tuning.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <cstdlib>
#include <link.h>
#include <map>
#include <unordered_map>
#include <utility>

namespace homing {
namespace {

/// So many areas whose memory went are kept for what comes back: a program's temporaries of a few iterations.
constexpr std::size_t most_parked = 128;
/// An area that has been away for so long (seconds) has ended, as far as the record goes.
constexpr double long_away = 2;

/// Blocks of one place and one size are one array after the other: a temporary. Of groups each is another.
bool may_come_back(const BlockGroup& group) {
    return group.blocks.empty() && !group.entry.name && group.entry.origin[0] &&
           (group.entry.kind == AreaKind::heap_block || group.entry.kind == AreaKind::mapping);
}

bool same_place_and_size(const AreaEntry& a, const AreaEntry& b) {
    return a.kind == b.kind && a.range.bytes() == b.range.bytes() &&
           std::equal(std::begin(a.origin), std::end(a.origin), std::begin(b.origin));
}

int count_objects(dl_phdr_info* info, std::size_t, void* count) noexcept {
    *static_cast<std::uint64_t*>(count) = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

/// Areas that the program named: one that is most of a known block renames it, one within a block is that
/// block's, any other is an area of its own: as far as it goes beyond the block, or the area before it, in
/// which it begins.
void add_named(std::vector<AreaEntry>& entries) {
    std::vector<AreaEntry> named;
    named_areas(named);
    std::ranges::sort(named, {}, [](const AreaEntry& entry) { return entry.range.begin; });
    const std::size_t known = entries.size();
    Address covered = 0;
    for (AreaEntry& entry : named) {
        Address begin = std::max(entry.range.begin, covered);
        for (std::size_t i = 0; i < known && begin < entry.range.end; ++i) {
            const Range& block = entries[i].range;
            if (!block.contains(entry.range.begin)) continue;
            begin = std::max(begin, block.end);
            const bool most = entry.range.end <= block.end && entry.range.bytes() * 10 >= block.bytes() * 9;
            if (most && entry.name) entries[i].name = entry.name;
        }
        entry.range.begin = begin;
        if (entry.range.empty()) continue;
        covered = entry.range.end;
        if (!entry.name) entry.name = unnamed_area;
        entries.push_back(entry);
    }
}

/// The parts (ascending) as far as they are whole pages of a block: pages with an allocator's headers, and
/// those that two blocks share, are also others'.
std::vector<Range> within_blocks(const std::vector<Range>& parts, const std::vector<Range>& blocks) {
    std::vector<Range> out;
    auto part = parts.begin();
    for (const Range& block : blocks) {
        const Range pages = whole_pages(block);
        while (part != parts.end() && part->end <= pages.begin)
            ++part;
        for (auto at = part; at != parts.end() && at->begin < pages.end; ++at)
            if (at->overlaps(pages))
                out.push_back({std::max(at->begin, pages.begin), std::min(at->end, pages.end)});
    }
    return out;
}

/// What of the parts (ascending) lies within live blocks.
std::vector<Range> within_small_blocks(const std::vector<Range>& parts) {
    std::vector<Range> out;
    for (const Range& part : parts)
        block_cover().parts_within(part, out);
    return out;
}

/// What the launcher looked up for --areas.
std::string_view area_code() noexcept {
    const char* code = std::getenv("HOMING_AREA_CODE");
    return code ? code : "";
}

std::uint64_t loaded_objects_version() noexcept {
    std::uint64_t version = 0;
    ::dl_iterate_phdr(count_objects, &version);
    return version;
}

} // namespace

WatchList::WatchList(const NodeMap& nodes, std::uint64_t seed)
    : nodes_(nodes), seed_(seed), filter_(option_text(Option::areas), area_code()),
      minimum_(option_size(Option::area_minimum)) {
    if (!filter_.error().empty()) record::message(record::Level::warning, filter_.error());
}

void WatchList::adopt(BlockGroup&& group, double now) {
    auto area = std::make_unique<WatchedArea>();
    area->group = std::move(group);
    const AreaEntry& entry = area->group.entry;
    area->range = pages_by_middle(entry.range);
    area->name = rows_.name_of(entry);
    area->id = next_id_++;
    area->number_granules(page_bytes(), nodes_.count(), seed_);
    rows_.begins(*area, now);
    rows_.frames(*area);
    if (Simulation* simulated = simulation())
        simulated->area_begins(area->id, area->range, area->name.c_str());
    areas_.push_back(std::move(area));
}

void WatchList::decide_granule(WatchedArea& area) {
    // A huge page that several blocks share is no granule of any: it would never be armed.
    const std::size_t whole =
        area.group.blocks.empty() ? area.range.bytes() : area.group.blocks.front().bytes() / 2;
    const bool huge = !simulation() && whole >= huge_granule_bytes() && holds_huge_pages(area.range);
    const std::size_t granule = huge ? huge_granule_bytes() : page_bytes();
    if (granule == area.granule) return;
    area.number_granules(granule, nodes_.count(), seed_);
    for (WatchedRange& watched : ranges_)
        if (watched.range.begin == area.range.begin) watched.granule = granule;
    rows_.begins(area, record::now());
}

void WatchList::refresh_armable() {
    std::vector<Range> ranges;
    ranges.reserve(areas_.size());
    for (const auto& area : areas_)
        ranges.push_back({area->origin, area->origin + area->granules * area->granule});
    // Huge granules may reach beyond their area: only areas' own whole granules are ever armed (is_armable).
    for (std::size_t i = 1; i < ranges.size(); ++i)
        ranges[i - 1].end = std::min(ranges[i - 1].end, areas_[i]->range.begin);
    const std::vector<Range> parts = private_writable(ranges);
    std::size_t at = 0;
    for (const auto& area : areas_) {
        area->armable.clear();
        while (at < parts.size() && parts[at].end <= area->range.begin)
            ++at;
        for (std::size_t i = at; i < parts.size() && parts[i].begin < area->range.end; ++i)
            area->armable.push_back(parts[i]);
        const AreaEntry& entry = area->group.entry;
        const std::vector<Range>& blocks = area->group.blocks;
        area->armable =
            within_blocks(area->armable, blocks.empty() ? std::vector<Range>{entry.range} : blocks);
        if (entry.kind == AreaKind::arena) area->armable = within_small_blocks(area->armable);
        const bool mapped = entry.kind == AreaKind::mapping;
        // Of what an allocator has mapped it is not known where its own data lie, and what is given to the
        // kernel.
        if ((mapped && mapped_.owner(area->range.begin) != MappingLog::Owner::program) ||
            (unseen_stacks_ && (mapped || entry.kind == AreaKind::arena)))
            area->armable.clear();
    }
}

bool WatchList::leave_room_for_stacks() noexcept {
    if (std::exchange(unseen_stacks_, true)) return false;
    seen_changes_ = ~std::uint64_t{0};
    stacks_are_news_ = true;
    return true;
}

bool WatchList::synchronised() const noexcept {
    return area_registry().changes() == seen_changes_ && !mapped_.has_changed() &&
           loaded_objects_version() == seen_objects_ && named_areas_version() == seen_names_;
}

/// Of granules in arenas: visit(index) until one is answered by false.
template <class Visit> void WatchList::each_in_arena(std::span<const Range> granules, Visit&& visit) const {
    auto area = areas_.begin();
    for (std::size_t i = 0; i < granules.size(); ++i) {
        while (area != areas_.end() && (*area)->range.end <= granules[i].begin)
            ++area;
        if (area == areas_.end()) return;
        if ((*area)->group.entry.kind == AreaKind::arena && (*area)->range.overlaps(granules[i]))
            if (!visit(i)) return;
    }
}

void WatchList::keep_covered(std::vector<Range>& granules) const {
    bool some = false;
    each_in_arena(granules, [&](std::size_t i) {
        if (!block_cover().is_within(granules[i])) {
            granules[i].end = granules[i].begin;
            some = true;
        }
        return true;
    });
    if (some) std::erase_if(granules, [](const Range& granule) { return granule.empty(); });
}

bool WatchList::all_covered(std::span<const Range> granules) const {
    bool all = true;
    each_in_arena(granules, [&](std::size_t i) { return all = block_cover().is_within(granules[i]); });
    return all;
}

/// The allocator's memory beside these entries (ascending).
void WatchList::add_arenas(std::vector<AreaEntry>& entries) {
    std::vector<AreaEntry> known;
    for (const auto& area : areas_)
        if (area->group.entry.kind == AreaKind::arena) known.push_back(area->group.entry);
    const std::vector<AreaEntry> arenas = arenas_.areas(entries, known, minimum_);
    const auto middle = static_cast<std::ptrdiff_t>(entries.size());
    entries.insert(entries.end(), arenas.begin(), arenas.end());
    std::inplace_merge(entries.begin(), entries.begin() + middle, entries.end(),
                       [](const AreaEntry& a, const AreaEntry& b) { return a.range.begin < b.range.begin; });
}

/// Mappings of the program beside these entries (ascending).
void WatchList::add_mappings(std::vector<AreaEntry>& entries) const {
    const std::vector<AreaEntry> mappings = mapped_.areas(entries, minimum_);
    const auto middle = static_cast<std::ptrdiff_t>(entries.size());
    entries.insert(entries.end(), mappings.begin(), mappings.end());
    std::inplace_merge(entries.begin(), entries.begin() + middle, entries.end(),
                       [](const AreaEntry& a, const AreaEntry& b) { return a.range.begin < b.range.begin; });
}

/// The program has unmapped or protected parts of what it has allocated: no window stands in its way there.
void WatchList::leave(std::span<const MappedMemory::Gone> gone) const {
    if (!leave_) return;
    for (const MappedMemory::Gone& one : gone)
        for (auto area = std::ranges::upper_bound(areas_, one.range.begin, {},
                                                  [](const auto& a) { return a->range.end; });
             area != areas_.end() && (*area)->range.begin < one.range.end; ++area) {
            const AreaEntry& entry = (*area)->group.entry;
            // What was allocated since is other memory. What small blocks lie in is unmapped by their
            // allocator.
            if (entry.kind == AreaKind::mapping || (entry.kind == AreaKind::arena && !one.stays) ||
                (entry.kind == AreaKind::heap_block && entry.generation > one.newest_block))
                continue;
            leave_(one.range);
        }
}

/// What the program has now, ascending by address; too small ones, which the user leaves out, only where
/// `all` are wanted.
std::vector<AreaEntry> WatchList::entries_now(bool all) {
    std::vector<AreaEntry> entries;
    area_registry().snapshot(entries);
    entries.insert(entries.end(), statics_.begin(), statics_.end());
    if (!all) std::erase_if(entries, [&](const AreaEntry& entry) { return entry.range.bytes() < minimum_; });
    add_named(entries);
    std::sort(entries.begin(), entries.end(), [](const AreaEntry& a, const AreaEntry& b) {
        return a.range.begin != b.range.begin ? a.range.begin < b.range.begin : a.range.end > b.range.end;
    });
    return entries;
}

std::vector<LeftOut> WatchList::left_out() {
    std::map<std::string, std::vector<Range>> by_reason;
    for (const AreaEntry& entry : entries_now(true)) {
        const std::string name = rows_.name_of(entry);
        if (entry.range.bytes() < minimum_ && entry.kind != AreaKind::named)
            by_reason["below --area-minimum: " + name].push_back(entry.range);
        else if (!filter_.accepts(name, rows_.places_of(entry)))
            by_reason["left out by --areas: " + name].push_back(entry.range);
    }
    std::vector<LeftOut> found;
    for (const auto& [reason, ranges] : by_reason) {
        std::size_t bytes = 0;
        for (const Range& range : ranges)
            bytes += range.bytes();
        if (bytes < unwatched_minimum) continue;
        for (const Range& range : ranges)
            found.push_back({range, reason});
    }
    return found;
}

void WatchList::record_ends() {
    for (const auto& area : parked_)
        record_end(*area, area->parked_since);
}

void WatchList::record_end(WatchedArea& area, double now) {
    if (!std::exchange(area.end_recorded, true)) rows_.ends(area, now);
}

/// What has gone may come back.
void WatchList::park(Areas gone, double now) {
    std::ranges::stable_sort(gone, {}, [](const auto& area) { return area->group.entry.generation; });
    for (auto& area : gone) {
        area->parked_since = now;
        area->end_recorded = false;
        if (may_come_back(area->group) && !simulation())
            parked_.push_back(std::move(area));
        else
            rows_.ends(*area, now);
    }
}

std::uint64_t WatchList::bytes_gone_since(double time) const {
    std::vector<Range> ranges;
    for (const auto& area : parked_)
        if (area->parked_since >= time)
            ranges.push_back({area->range.begin, area->range.begin + area->used_bytes()});
    std::ranges::sort(ranges, {}, &Range::begin);
    std::uint64_t bytes = 0;
    Address counted = 0;
    for (const Range& range : ranges) {
        bytes += range.end - std::clamp(counted, range.begin, range.end);
        counted = std::max(counted, range.end);
    }
    return bytes;
}

/// What did not come back for long, or is one of too many, has ended.
void WatchList::forget_parked(double now) {
    const std::size_t over = parked_.size() - std::min(parked_.size(), most_parked);
    for (std::size_t i = 0; i < parked_.size(); ++i)
        if ((i < over || now >= parked_[i]->parked_since + long_away) &&
            !std::exchange(parked_[i]->end_recorded, true))
            rows_.ends(*parked_[i], parked_[i]->parked_since);
    parked_.erase(parked_.begin(), parked_.begin() + static_cast<std::ptrdiff_t>(over));
}

void WatchList::come_back(std::unique_ptr<WatchedArea> area, BlockGroup group, double now) {
    const Range pages = pages_by_middle(group.entry.range);
    const bool told = area->end_recorded || area->range.begin != pages.begin;
    area->move_to(std::move(group), pages);
    area->end_recorded = false;
    if (told) rows_.begins(*area, now);
    returned_.push_back(area.get());
    areas_.push_back(std::move(area));
}

/// The allocator's memory has other borders now, because of blocks around it that came or went. What was
/// learnt of its pages is as true as before: each new arena has it from the one that had most of its pages.
void WatchList::inherit(const Areas& gone, std::size_t first_new) {
    const auto common = [](const WatchedArea& a, const WatchedArea& b) {
        const Address begin = std::max(a.range.begin, b.range.begin);
        return std::max(begin, std::min(a.range.end, b.range.end)) - begin;
    };
    for (std::size_t i = first_new; i < areas_.size(); ++i) {
        WatchedArea& area = *areas_[i];
        if (area.group.entry.kind != AreaKind::arena) continue;
        const auto from =
            std::ranges::max_element(gone, {}, [&](const auto& one) { return common(area, *one); });
        if (from == gone.end() || common(area, **from) == 0 || (*from)->granule != area.granule) continue;
        const WatchedArea& old = **from;
        const auto apart = static_cast<std::int64_t>(old.origin - area.origin);
        area.learnt.inherit(old.learnt, apart / static_cast<std::int64_t>(area.granule), area.granules);
        area.references = old.references;
        area.touches_in_iteration = old.touches_in_iteration;
        area.sent_home = old.sent_home;
    }
}

/// Groups (ascending) that were not there before: one of them may be what went, allocated anew. Those of one
/// place come back in the order in which they came the last time. Returns whether there is a new area.
bool WatchList::adopt_or_return(std::vector<BlockGroup> fresh, Areas gone, double now) {
    const std::size_t count = areas_.size();
    Areas arenas; // they do not come back; others begin where they were
    for (auto& area : gone)
        if (area->group.entry.kind == AreaKind::arena) arenas.push_back(std::move(area));
    std::erase_if(gone, [](const auto& area) { return !area; });
    park(std::move(gone), now);
    std::unordered_multimap<std::uint64_t, std::size_t> away; // where in `parked_`
    for (std::size_t i = 0; i < parked_.size(); ++i)
        away.emplace(place_and_size(parked_[i]->group.entry), i);
    std::ranges::stable_sort(fresh, {}, [](const BlockGroup& group) { return group.entry.generation; });
    for (BlockGroup& group : fresh) {
        const Range pages = pages_by_middle(group.entry.range);
        auto best = away.end();
        if (may_come_back(group)) {
            const auto [first, end] = away.equal_range(place_and_size(group.entry));
            for (auto at = first; at != end; ++at) {
                const WatchedArea& area = *parked_[at->second];
                if (!same_place_and_size(area.group.entry, group.entry) ||
                    area.range.bytes() != pages.bytes() ||
                    (area.granule != page_bytes() &&
                     area.range.begin % area.granule != pages.begin % area.granule))
                    continue;
                if (best == away.end() || at->second < best->second) best = at;
            }
        }
        if (best == away.end()) {
            adopt(std::move(group), now);
        } else {
            come_back(std::move(parked_[best->second]), std::move(group), now);
            away.erase(best);
        }
    }
    std::erase_if(parked_, [](const auto& area) { return !area; });
    inherit(arenas, count);
    park(std::move(arenas), now);
    forget_parked(now);
    std::ranges::sort(areas_, {}, [](const auto& area) { return area->range.begin; });
    return areas_.size() != count;
}

/// Where the program has said which memory is hot, pages elsewhere stay, as long as it says so. What was
/// learnt of an area meanwhile decides when it is hot again.
void WatchList::tell_hot_from_cold() {
    const std::vector<Range> hot = hot_ranges();
    for (const auto& area : areas_) {
        // Its own bytes: the pages at its ends may be neighbours', too.
        const bool is_cold = !hot.empty() && std::ranges::none_of(hot, [&](const Range& range) {
            return range.overlaps(area->group.entry.range);
        });
        area->waiting |= area->cold && !is_cold;
        area->cold = is_cold;
    }
}

/// It is the same area as before, and may have got another name since.
void WatchList::rename(WatchedArea& area, const AreaEntry& entry, double now) {
    const char* const before = std::exchange(area.group.entry.name, entry.name);
    if (!entry.name || (before && std::string_view(before) == entry.name)) return;
    area.name = entry.name;
    rows_.begins(area, now);
}

bool WatchList::synchronise(double now) {
    const std::uint64_t changes = area_registry().changes();
    const std::uint64_t objects = loaded_objects_version();
    const std::uint64_t names = named_areas_version();
    const bool of_arenas = now >= next_arenas_ && arenas_.has_changed();
    returned_.clear();
    if (changes == seen_changes_ && objects == seen_objects_ && names == seen_names_ && !of_arenas &&
        !mapped_.has_changed())
        return false;
    const bool names_are_new = std::exchange(seen_names_, names) != names;
    if (objects != seen_objects_) {
        // An object may have gone: its static arrays go with it. Start over, keep what is still there.
        seen_objects_ = objects;
        rows_.forget();
        statics_.clear();
        known_objects_.clear();
        static_areas(std::min(minimum_, unwatched_minimum), statics_, known_objects_);
    }
    seen_changes_ = changes;
    const std::vector<MappedMemory::Gone> memory_gone = mapped_.follow();

    const double begun = thread_seconds();
    if (of_arenas) arenas_.look(minimum_);
    std::vector<AreaEntry> entries = entries_now(false);
    add_arenas(entries);
    add_mappings(entries);
    Areas before = std::move(areas_);
    areas_.clear();
    std::vector<const BlockGroup*> known;
    for (const auto& area : before)
        known.push_back(&area->group);
    std::vector<BlockGroup> fresh;
    Areas gone;
    auto old = before.begin();
    Address covered = 0;
    const auto ends_before = [&](Address begin) {
        for (; old != before.end() && (*old)->group.entry.range.begin < begin; ++old)
            gone.push_back(std::move(*old));
    };
    for (BlockGroup& group : group_blocks(entries, known)) {
        const Range range = group.entry.range;
        ends_before(range.begin);
        if (old != before.end() && same_blocks((*old)->group, group)) {
            covered = (*old)->range.end;
            if (names_are_new) rename(**old, group.entry, now);
            areas_.push_back(std::move(*old++));
            continue;
        }
        // Inside an area that is watched already (a named part of a block): one owner each page. What the
        // user leaves out leaves its pages to others.
        const Range pages = pages_by_middle(range);
        if (whole_pages(range).empty() || pages.begin < covered ||
            !filter_.adopts(rows_.name_of(group.entry), rows_.places_of(group.entry)))
            continue;
        covered = pages.end;
        fresh.push_back(std::move(group));
    }
    ends_before(~Address{0});
    bool changed = !gone.empty() || std::exchange(stacks_are_news_, false);
    if (changed || !fresh.empty()) changed |= adopt_or_return(std::move(fresh), std::move(gone), now);
    leave(memory_gone);
    if (changed || names_are_new) tell_hot_from_cold();
    if (changed || of_arenas) refresh_armable();
    if (of_arenas) next_arenas_ = now + (thread_seconds() - begun) / model::tuning::negligible_part;
    if (changed) {
        ranges_.clear();
        for (const auto& area : areas_)
            ranges_.push_back({area->range, area->granule, static_cast<int>(area->id)});
    }
    return changed;
}

WatchedArea* WatchList::find(Address address) noexcept {
    const auto* const area = find_range(areas_, address, [](const auto& one) { return one->range; });
    return area ? area->get() : nullptr;
}

} // namespace homing
