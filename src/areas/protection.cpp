#include "areas/protection.hpp"

#include "areas/proc_maps.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace homing {

std::vector<Range> private_writable(std::span<const Range> ranges) {
    std::vector<Range> parts;
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (!maps) return parts;
    char line[512];
    std::size_t at = 0;
    bool whole_line = true;
    while (std::fgets(line, sizeof line, maps)) {
        const bool begins_line = whole_line;
        whole_line = std::strchr(line, '\n') != nullptr;
        Mapping mapping;
        if (!begins_line || !parse_mapping(line, mapping)) continue;
        const Range there = mapping.range;
        while (at < ranges.size() && ranges[at].end <= there.begin)
            ++at;
        if (!mapping.readable || !mapping.writable || mapping.shared) continue;
        for (std::size_t i = at; i < ranges.size() && ranges[i].begin < there.end; ++i) {
            const Range part{std::max(ranges[i].begin, there.begin), std::min(ranges[i].end, there.end)};
            if (part.empty()) continue;
            if (!parts.empty() && parts.back().end == part.begin && parts.back().begin >= ranges[i].begin)
                parts.back().end = part.end;
            else
                parts.push_back(part);
        }
    }
    std::fclose(maps);
    return parts;
}

} // namespace homing
