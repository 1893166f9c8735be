#include "areas/populated.hpp"

#include "base/page_scan.hpp"
#include "base/raw_calls.hpp"

#include <algorithm>

namespace homing {
namespace {

constexpr std::size_t most_entries = 512; ///< that are read in one go

/// An entry of the page map (Documentation/admin-guide/mm/pagemap.rst): present, not of a file and not shared
/// memory, mapped once.
bool is_populated(std::uint64_t entry) noexcept {
    constexpr std::uint64_t present = std::uint64_t{1} << 63;
    constexpr std::uint64_t of_file = std::uint64_t{1} << 61;
    constexpr std::uint64_t exclusive = std::uint64_t{1} << 56;
    return (entry & (present | of_file | exclusive)) == (present | exclusive);
}

} // namespace

std::optional<Range> PopulatedPages::first(Range range, bool after_fork) noexcept {
    if (range.empty()) return Range{range.end, range.end};
    if (file_ < 0) file_ = raw::open(path_.c_str(), O_RDONLY);
    if (file_ < 0) return std::nullopt;
    if (scans_ && !after_fork) { // it does not tell what is shared
        const std::optional<Range> found =
            first_pages(file_, range, page_is_present, page_is_of_file | page_is_zero_page);
        if (found) return found;
        scans_ = false;
    }
    return first_by_entries(range);
}

std::optional<Range> PopulatedPages::first_by_entries(Range range) noexcept {
    std::uint64_t entries[most_entries];
    Range found{range.end, range.end};
    for (Address at = range.begin; at < range.end;) {
        const std::size_t count = std::min((range.end - at) / page_bytes(), most_entries);
        const std::size_t bytes = count * sizeof *entries;
        if (raw::read_at(file_, entries, bytes, at / page_bytes() * sizeof *entries) !=
            static_cast<long>(bytes))
            return std::nullopt;
        for (std::size_t i = 0; i < count; ++i, at += page_bytes()) {
            if (is_populated(entries[i])) {
                found.begin = std::min(found.begin, at);
            } else if (found.begin < at) {
                found.end = at;
                return found;
            }
        }
    }
    return found;
}

void PopulatedPages::close() noexcept {
    raw::close(file_);
    file_ = -1;
}

} // namespace homing
