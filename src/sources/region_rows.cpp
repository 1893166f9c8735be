#include "sources/region_rows.hpp"

#include "record/record.hpp"

namespace homing {

void record_regions(const RegionTable& regions, WatchList& watch) {
    for (std::uint32_t i = 0; i < regions.all().size(); ++i) {
        const RegionInfo& info = regions.all()[i];
        record::region_row row;
        row.id = i;
        row.offset = info.function;
        if (const ObjectPlace place = watch.recorded_place(info.function); place.file) {
            row.object = record::text(place.file->path);
            row.offset = place.offset;
            row.symbol = record::text(watch.symbol(info.function));
        }
        row.count = info.count;
        row.seconds = info.seconds;
        record::append(row);
    }
}

} // namespace homing
