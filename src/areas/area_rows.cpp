#include "areas/area_rows.hpp"

#include "areas/elf_object.hpp"
#include "machine/simulation.hpp"
#include "record/record.hpp"

#include <cstdio>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace homing {
namespace {

const char* base_name(const char* path) noexcept {
    const char* slash = path ? std::strrchr(path, '/') : nullptr;
    return slash ? slash + 1 : (path ? path : "");
}

} // namespace

ObjectPlace AreaRows::place(Address address) {
    const ObjectPlace place = places_.at(address);
    if (place.file && recorded_files_.insert(place.file).second) {
        record::object_row row;
        row.path = record::text(place.file->path);
        row.identity = record::text(place.file->identity);
        record::append(row);
    }
    return place;
}

std::string AreaRows::heap_name(const AreaEntry& entry) {
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

std::string AreaRows::name_of(const AreaEntry& entry) { return entry.name ? entry.name : heap_name(entry); }

/// What rules by lines of source go by: nothing where there are none.
std::vector<AreaPlace> AreaRows::places_of(const AreaEntry& entry) {
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

/// A return address, as the `at`-th of those that a row has.
template <class Row> void AreaRows::put(Row& row, std::size_t at, Address frame) {
    const ObjectPlace where = place(frame);
    row.origin[at] = where.offset;
    row.origin_object[at] = record::text(where.file ? where.file->path : "");
}

/// The return addresses that the area's own row has no room for.
void AreaRows::frames(const WatchedArea& area) {
    const Address* origin = area.group.entry.origin;
    constexpr int in_row = std::extent_v<decltype(record::area_row::origin)>;
    constexpr int in_more = std::extent_v<decltype(record::frames_row::origin)>;
    for (int first = in_row; first < max_origin_frames && origin[first]; first += in_more) {
        record::frames_row row;
        row.area = area.id;
        row.first = static_cast<record::u32>(first);
        for (int i = 0; i < in_more && first + i < max_origin_frames && origin[first + i]; ++i)
            put(row, static_cast<std::size_t>(i), origin[first + i]);
        record::append(row);
    }
}

void AreaRows::begins(const WatchedArea& area, double now) {
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
    if (entry.object) row.offset = place(entry.range.begin).offset;
    if (entry.kind == AreaKind::named) // of a static array? Reports know its name
        if (const ObjectPlace where = place(entry.range.begin); where.file) {
            row.object = record::text(where.file->path);
            row.offset = where.offset;
        }
    if (entry.kind == AreaKind::heap_block) row.order = entry.generation;
    for (std::size_t i = 0; i < std::size(row.origin) && entry.origin[i]; ++i)
        put(row, i, entry.origin[i]);
    record::append(row);
}

void AreaRows::ends(const WatchedArea& area, double now) const {
    record::area_end_row row;
    row.id = area.id;
    row.time = now;
    record::append(row);
    if (Simulation* simulated = simulation()) simulated->area_ends(area.id, area.range);
}

} // namespace homing
