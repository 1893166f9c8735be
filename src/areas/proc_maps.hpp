// The parsers behind mappings.cpp, by file name, so that they can be tested on recorded and damaged files.
#pragma once

#include "areas/areas.hpp"

#include <string_view>

namespace homing {

/// A line of /proc/PID/maps, which also heads each mapping of smaps.
struct Mapping {
    Range range;
    bool readable = false;
    bool writable = false;
    bool shared = false;
    std::string_view name; ///< a path, "[heap]", or nothing; into the line
};
bool parse_mapping(std::string_view line, Mapping& mapping) noexcept;

std::vector<Unwatched> unwatched_mappings(const std::vector<Range>& watched, std::size_t minimum,
                                          const char* maps);
bool smaps_hold_huge_pages(Range range, const char* smaps);

} // namespace homing
