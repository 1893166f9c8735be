// The parsers behind mappings.cpp, by file name, so that they can be tested on recorded and damaged files.
#pragma once

#include "areas/areas.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>
#include <span>
#include <string_view>

namespace homing {

/// A line of /proc/PID/maps, which also heads each mapping of smaps.
struct Mapping {
    Range range;
    bool readable = false;
    bool writable = false;
    bool shared = false;
    std::uint64_t inode = 0; ///< 0: of no file
    std::string_view name;   ///< a path, "[heap]", or nothing; into the line
};
bool parse_mapping(std::string_view line, Mapping& mapping) noexcept;

/// Tell `visit` of each mapping in a file in the format of /proc/self/maps, in order. False where the file
/// cannot be read or is none such. Nothing is allocated here; the buffer must hold the longest line.
template <class Visit> bool each_mapping(const char* path, std::span<char> buffer, Visit&& visit) {
    const int file = raw::open(path, O_RDONLY);
    if (file < 0) return false;
    // procfs gives whole lines of at most a page or so a read; a line cut at the end of the buffer waits for
    // the next.
    std::size_t held = 0;
    std::uint64_t offset = 0;
    bool good = true;
    bool last = false;
    bool any = false;
    while (!last && good) {
        const long got = raw::call(SYS_pread64, file, buffer.data() + held, buffer.size() - held, offset);
        if (got == -EINTR) continue;
        good = got >= 0;
        last = got <= 0;
        if (got > 0) {
            held += static_cast<std::size_t>(got);
            offset += static_cast<std::uint64_t>(got);
        }
        const char* line = buffer.data();
        const char* const end = line + held;
        while (line < end && good) {
            const char* const newline = std::find(line, end, '\n');
            if (newline == end && !last) break;
            if (newline != line) {
                Mapping mapping;
                good = parse_mapping(std::string_view(line, newline), mapping);
                if (good) visit(mapping);
                any |= good;
            }
            line = std::min(newline + 1, end);
        }
        held = static_cast<std::size_t>(end - line);
        std::copy(line, end, buffer.data());
        if (held == buffer.size()) good = false;
    }
    raw::close(file);
    return good && any;
}

std::vector<Unwatched> unwatched_mappings(const std::vector<Range>& watched, std::size_t minimum,
                                          const char* maps);
bool smaps_hold_huge_pages(Range range, const char* smaps);
bool is_of_one_object(Range range, const char* maps);

} // namespace homing
