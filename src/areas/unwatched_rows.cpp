#include "areas/unwatched_rows.hpp"

#include "areas/areas.hpp"
#include "base/own_mappings.hpp"
#include "kernel/own_pages.hpp"
#include "record/record.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace homing {
namespace {

constexpr std::size_t most_unwatched = 24;

} // namespace

void record_unwatched(WatchList& watch) {
    std::vector<Range> known = own_ranges();
    own_mappings.each([&](Address begin, Address end) { known.push_back({begin, end}); });
    std::size_t watched = 0;
    for (const WatchedRange& range : watch.ranges()) {
        known.push_back(range.range);
        watched += range.range.bytes();
    }
    // What the user left out is one row for each name.
    std::map<std::string, Unwatched> left_out;
    for (const auto& [range, reason] : watch.left_out()) {
        left_out.try_emplace(reason, Unwatched{range, 0, reason}).first->second.bytes += range.bytes();
        known.push_back(pages_of(range));
    }
    std::vector<Unwatched> unwatched = unwatched_mappings(
        known, std::clamp(watched / unwatched_share, std::min(unwatched_minimum, 16 * page_bytes()),
                          unwatched_minimum));
    for (const auto& [reason, one] : left_out)
        unwatched.push_back(one);
    std::sort(unwatched.begin(), unwatched.end(),
              [](const Unwatched& a, const Unwatched& b) { return a.bytes > b.bytes; });
    // The rest of a kind is told with the first of it.
    for (; unwatched.size() > most_unwatched; unwatched.pop_back()) {
        const auto first = std::ranges::find(unwatched, unwatched.back().what, &Unwatched::what);
        if (first != unwatched.end() - 1) first->bytes += unwatched.back().bytes;
    }
    for (const Unwatched& one : unwatched) {
        record::unwatched_row row;
        row.what = record::text(one.what);
        row.begin = one.range.begin;
        row.bytes = one.bytes;
        record::append(row);
    }
    if (const std::uint64_t blocks = area_registry().dropped())
        record::message(record::Level::note,
                        std::to_string(blocks) +
                            " blocks are not watched: the table of large blocks has room for " +
                            std::to_string(AreaRegistry::capacity));
    if (const std::uint64_t bytes = block_cover().dropped())
        record::message(record::Level::note,
                        std::to_string(bytes >> 20) +
                            " MiB of small blocks are not watched: no room in homing's tables");
    for (const AreaFilter::Rule& rule : watch.rules()) {
        record::rule_row row;
        row.text = record::text(rule.text());
        row.areas = rule.areas;
        record::append(row);
        if (!rule.matched)
            record::message(record::Level::warning, "--areas " + rule.text() + ": no area has such a name");
    }
}

} // namespace homing
