#include "areas/protection.hpp"

#include "areas/proc_maps.hpp"

#include <algorithm>

namespace homing {

std::vector<Range> private_writable(std::span<const Range> ranges) {
    std::vector<Range> parts;
    std::vector<char> buffer(8192); // holds the longest line
    std::size_t at = 0;
    const bool complete = each_mapping("/proc/self/maps", buffer, [&](const Mapping& mapping) {
        const Range there = mapping.range;
        while (at < ranges.size() && ranges[at].end <= there.begin)
            ++at;
        if (!mapping.readable || !mapping.writable || mapping.shared) return;
        for (std::size_t i = at; i < ranges.size() && ranges[i].begin < there.end; ++i) {
            const Range part{std::max(ranges[i].begin, there.begin), std::min(ranges[i].end, there.end)};
            if (part.empty()) continue;
            if (!parts.empty() && parts.back().end == part.begin && parts.back().begin >= ranges[i].begin)
                parts.back().end = part.end;
            else
                parts.push_back(part);
        }
    });
    if (!complete) parts.clear();
    return parts;
}

} // namespace homing
