#include "sources/touch_record.hpp"

#include "record/record.hpp"

namespace homing {

void TouchRecord::touch(WatchList& watch, const WatchedArea& area, const Reference& reference, int position,
                        const TouchPlace& where, std::uint32_t source, double now) {
    if (left_ == 0) return;
    if (--left_ == 0)
        record::message(record::Level::note,
                        "the record holds no more touches: --record-samples allows no more");
    record::sample_row row;
    row.area = area.id;
    row.granule = area.granule_of(reference.address);
    row.byte = (reference.address - area.origin) % area.granule;
    row.time = now;
    row.thread = reference.thread;
    row.node = position;
    row.write = reference.write;
    row.weight = reference.weight;
    row.region = where.region;
    row.place = where.place;
    row.iteration = where.iteration;
    row.source = source;
    if (const ObjectPlace code = watch.recorded_place(reference.instruction); code.file) {
        row.object = record::text(code.file->path);
        row.offset = code.offset;
    }
    record::append(row);
}

void TouchRecord::homes(const WatchedArea& area, std::span<const int> positions, std::uint32_t when,
                        double now) const {
    for (std::size_t first = 0; first < positions.size();) {
        std::size_t end = first + 1;
        while (end < positions.size() && positions[end] == positions[first])
            ++end;
        record::homes_row row;
        row.area = area.id;
        row.time = now;
        row.when = when;
        row.first = first;
        row.end = end;
        row.node = positions[first];
        record::append(row);
        first = end;
    }
}

} // namespace homing
