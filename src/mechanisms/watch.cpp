#include "mechanisms/watch.hpp"

#include "areas/elf_object.hpp"
#include "areas/named.hpp"
#include "areas/protection.hpp"
#include "base/options.hpp"
#include "mechanisms/simulation.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <map>
#include <type_traits>

namespace homing {
namespace {

const char* base_name(const char* path) noexcept {
    const char* slash = path ? std::strrchr(path, '/') : nullptr;
    return slash ? slash + 1 : (path ? path : "");
}

int count_objects(dl_phdr_info* info, std::size_t, void* count) noexcept {
    *static_cast<std::uint64_t*>(count) = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

/// Areas that the program named: one that is most of a known block renames it, one within a block is that
/// block's, any other is an area of its own.
void add_named(std::vector<AreaEntry>& entries) {
    std::vector<AreaEntry> named;
    named_areas(named);
    const std::size_t known = entries.size();
    for (const AreaEntry& entry : named) {
        bool inside = false;
        for (std::size_t i = 0; i < known && !inside; ++i) {
            const Range& block = entries[i].range;
            inside = block.begin <= entry.range.begin && entry.range.end <= block.end;
            if (inside && entry.range.bytes() * 10 >= block.bytes() * 9) entries[i].name = entry.name;
        }
        if (!inside) entries.push_back(entry);
    }
}

/// Of single entries all granules; of blocks those that a block has a part of.
policy::PageSet own_granules(const WatchedArea& area) {
    if (area.group.blocks.empty()) return policy::PageSet::whole(area.granules);
    std::vector<policy::PageRange> own;
    std::uint64_t next = 0;
    for (const Range& block : area.group.blocks) {
        const Range inside{std::max(block.begin, area.range.begin), std::min(block.end, area.range.end)};
        if (inside.empty()) continue;
        own.push_back({std::max(next, area.granule_of(inside.begin)), area.granule_of(inside.end - 1) + 1});
        next = own.back().end;
    }
    return policy::PageSet(own);
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

NodeMap::NodeMap(const Machine& machine) {
    position_.fill(-1);
    for (const Node& node : machine.nodes)
        if (node.target() && node.index < max_nodes) {
            position_[static_cast<std::size_t>(node.index)] = static_cast<int>(system_.size());
            system_.push_back(node.index);
        }
}

Range WatchedArea::granule_range(std::uint64_t index) const noexcept {
    const Address begin = origin + index * granule;
    return {std::max(begin, range.begin), std::min<Address>(begin + granule, range.end)};
}

bool WatchedArea::is_armable(std::uint64_t index) const noexcept {
    const Range wanted = granule_range(index);
    if (wanted.bytes() != granule) return false; // a part of a huge page would split it
    const auto at = std::upper_bound(armable.begin(), armable.end(), wanted.begin,
                                     [](Address value, const Range& part) { return value < part.begin; });
    return at != armable.begin() && wanted.end <= (at - 1)->end;
}

WatchList::WatchList(const NodeMap& nodes, std::uint64_t seed)
    : nodes_(nodes), seed_(seed), filter_(option_text(Option::areas), area_code()),
      minimum_(option_size(Option::area_minimum)) {
    if (!filter_.error().empty()) record::message(record::Level::warning, filter_.error());
}

ObjectPlace WatchList::recorded_place(Address address) {
    const ObjectPlace place = places_.at(address);
    if (place.file && recorded_files_.insert(place.file).second) {
        record::object_row row;
        row.path = record::text(place.file->path);
        row.identity = record::text(place.file->identity);
        record::append(row);
    }
    return place;
}

std::string WatchList::heap_name(const AreaEntry& entry) {
    // The first frame outside the language's runtime names the block best; reports resolve it to a source
    // line.
    for (const Address frame : entry.origin) {
        if (!frame) break;
        const ObjectPlace place = places_.at(frame);
        if (place.file && is_runtime_object(place.file->path)) continue;
        const char* object = place.file ? base_name(place.file->path.c_str()) : "";
        const std::string& symbol = places_.symbol(frame);
        char text[256];
        if (symbol.empty())
            std::snprintf(text, sizeof text, "heap@%s+0x%llx", object,
                          static_cast<unsigned long long>(place.offset));
        else
            std::snprintf(text, sizeof text, "heap@%s:%s+0x%llx", object, symbol.c_str(),
                          static_cast<unsigned long long>(place.offset));
        return text;
    }
    return "heap@unknown";
}

std::string WatchList::name_of(const AreaEntry& entry) { return entry.name ? entry.name : heap_name(entry); }

/// What rules by lines of source go by: nothing where there are none.
std::vector<AreaPlace> WatchList::places_of(const AreaEntry& entry) {
    std::vector<AreaPlace> places;
    const auto add = [&](Address address, std::uint64_t back) {
        const ObjectPlace place = places_.at(address);
        if (place.file) places.push_back({place.file->path, place.file->identity, place.offset - back});
    };
    for (const Address frame : entry.origin)
        if (frame) add(frame, 1); // a return address is the instruction after the call
    if (entry.object) add(entry.range.begin, 0);
    return places;
}

/// The return addresses that the area's own row has no room for.
void WatchList::record_frames(const WatchedArea& area) {
    const Address* origin = area.group.entry.origin;
    constexpr int in_row = std::extent_v<decltype(record::area_row::origin)>;
    constexpr int in_more = std::extent_v<decltype(record::frames_row::origin)>;
    for (int first = in_row; first < max_origin_frames && origin[first]; first += in_more) {
        record::frames_row row;
        row.area = area.id;
        row.first = static_cast<record::u32>(first);
        for (int i = 0; i < in_more && first + i < max_origin_frames && origin[first + i]; ++i) {
            const ObjectPlace place = recorded_place(origin[first + i]);
            row.origin[i] = place.offset;
            row.origin_object[i] = record::text(place.file ? place.file->path : "");
        }
        record::append(row);
    }
}

void WatchList::record(const WatchedArea& area, double now) {
    record::area_row row;
    row.id = area.id;
    const AreaEntry& entry = area.group.entry;
    row.begin = entry.range.begin;
    row.bytes = entry.range.bytes();
    row.blocks = static_cast<record::u32>(std::max<std::size_t>(1, area.group.blocks.size()));
    row.kind = static_cast<record::u32>(entry.kind);
    row.granule = static_cast<record::u32>(area.granule);
    row.time = now;
    row.name = record::text(area.name);
    row.object = record::text(entry.object ? entry.object : "");
    if (entry.object) row.offset = recorded_place(entry.range.begin).offset;
    if (entry.kind == AreaKind::heap_block) row.order = entry.generation;
    for (std::size_t i = 0; i < std::size(row.origin) && entry.origin[i]; ++i) {
        const ObjectPlace place = recorded_place(entry.origin[i]);
        row.origin[i] = place.offset;
        row.origin_object[i] = record::text(place.file ? place.file->path : "");
    }
    record::append(row);
}

void WatchList::adopt(BlockGroup&& group, double now) {
    auto area = std::make_unique<WatchedArea>();
    area->group = std::move(group);
    const AreaEntry& entry = area->group.entry;
    area->range = whole_pages(entry.range);
    if (area->range.empty()) return;
    area->name = name_of(entry);
    if (!filter_.adopts(area->name, places_of(entry))) return;
    area->id = next_id_++;
    lay_out(*area, page_bytes());
    record(*area, now);
    record_frames(*area);
    if (Simulation* simulated = simulation())
        simulated->area_begins(area->id, area->range, area->name.c_str());
    areas_.push_back(std::move(area));
}

/// Number the area's granules. Whatever goes by their numbers begins anew.
void WatchList::lay_out(WatchedArea& area, std::size_t granule) const {
    area.granule = granule;
    area.origin = align_down(area.range.begin, granule);
    area.granules = (area.range.end - area.origin + granule - 1) / granule;
    area.own = own_granules(area);
    area.exists = area.own;
    area.learnt.reset(area.granules);
    area.remote_share.reset(area.granules, nodes_.count(), seed_);
    area.seen_homes.forget();
    area.refused = {};
    area.initially_dealt.clear();
    area.pending.clear();
}

void WatchList::decide_granule(WatchedArea& area) {
    // A huge page that several blocks share is no granule of any: it would never be armed.
    const std::size_t whole =
        area.group.blocks.empty() ? area.range.bytes() : area.group.blocks.front().bytes() / 2;
    const bool huge = !simulation() && whole >= huge_granule_bytes() && holds_huge_pages(area.range);
    const std::size_t granule = huge ? huge_granule_bytes() : page_bytes();
    if (granule == area.granule) return;
    lay_out(area, granule);
    for (WatchedRange& watched : ranges_)
        if (watched.range.begin == area.range.begin) watched.granule = granule;
    record(area, record::now());
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
        if (!area->group.blocks.empty()) area->armable = within_blocks(area->armable, area->group.blocks);
    }
}

bool WatchList::synchronised() const noexcept {
    return area_registry().changes() == seen_changes_ && loaded_objects_version() == seen_objects_ &&
           named_areas_version() == seen_names_;
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
        const std::string name = name_of(entry);
        if (entry.range.bytes() < minimum_ && entry.kind != AreaKind::named)
            by_reason["below --area-minimum: " + name].push_back(entry.range);
        else if (!filter_.accepts(name, places_of(entry)))
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

void WatchList::end_area(const WatchedArea& area, double now) const {
    record::area_end_row row;
    row.id = area.id;
    row.time = now;
    record::append(row);
    if (Simulation* simulated = simulation()) simulated->area_ends(area.id, area.range);
}

bool WatchList::synchronise(double now) {
    const std::uint64_t changes = area_registry().changes();
    const std::uint64_t objects = loaded_objects_version();
    const std::uint64_t names = named_areas_version();
    if (changes == seen_changes_ && objects == seen_objects_ && names == seen_names_) return false;
    seen_names_ = names;
    if (objects != seen_objects_) {
        // An object may have gone: its static arrays go with it. Start over, keep what is still there.
        seen_objects_ = objects;
        places_.forget();
        statics_.clear();
        known_objects_.clear();
        static_areas(std::min(minimum_, unwatched_minimum), statics_, known_objects_);
    }
    seen_changes_ = changes;

    std::vector<std::unique_ptr<WatchedArea>> before = std::move(areas_);
    areas_.clear();
    std::vector<const BlockGroup*> known;
    for (const auto& area : before)
        known.push_back(&area->group);
    std::vector<BlockGroup> groups = group_blocks(entries_now(false), known);
    std::size_t old = 0;
    Address covered = 0;
    bool changed = false;
    const auto end_before = [&](Address begin) {
        for (; old < before.size() && before[old]->group.entry.range.begin < begin; ++old) {
            end_area(*before[old], now);
            changed = true;
        }
    };
    for (BlockGroup& group : groups) {
        const Range range = group.entry.range;
        end_before(range.begin);
        if (old < before.size() && same_blocks(before[old]->group, group)) {
            covered = before[old]->range.end;
            areas_.push_back(std::move(before[old++]));
            continue;
        }
        if (whole_pages(range).begin < covered)
            continue; // inside an area that is watched already (a named part of a block): one owner each page
        const std::size_t count = areas_.size();
        adopt(std::move(group), now);
        if (areas_.size() != count) {
            covered = areas_.back()->range.end;
            changed = true;
        }
    }
    end_before(~Address{0});
    if (changed) {
        refresh_armable();
        ranges_.clear();
        for (const auto& area : areas_)
            ranges_.push_back({area->range, area->granule, static_cast<int>(area->id)});
    }
    return changed;
}

WatchedArea* WatchList::find(Address address) noexcept {
    const auto at = std::upper_bound(
        areas_.begin(), areas_.end(), address,
        [](Address value, const std::unique_ptr<WatchedArea>& area) { return value < area->range.begin; });
    if (at == areas_.begin()) return nullptr;
    WatchedArea* area = (at - 1)->get();
    return area->range.contains(address) ? area : nullptr;
}

} // namespace homing
