#include "areas/protection.hpp"

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
        unsigned long begin = 0;
        unsigned long end = 0;
        char mode[5] = {};
        if (!begins_line || std::sscanf(line, "%lx-%lx %4s", &begin, &end, mode) != 3) continue;
        while (at < ranges.size() && ranges[at].end <= begin)
            ++at;
        if (mode[0] != 'r' || mode[1] != 'w' || mode[3] != 'p') continue;
        for (std::size_t i = at; i < ranges.size() && ranges[i].begin < end; ++i) {
            const Range part{std::max<Address>(ranges[i].begin, begin),
                             std::min<Address>(ranges[i].end, end)};
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
