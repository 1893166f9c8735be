// PAGEMAP_SCAN (Linux 6.7): the kernel looks for pages of a kind in a range, in a third of the time that
// reading their entries of /proc/self/pagemap takes.
#pragma once

#include "base/pages.hpp"
#include "base/raw_calls.hpp"

#include <cstdint>
#include <optional>
#include <sys/ioctl.h>
#include <sys/syscall.h>

namespace homing {

// What linux/fs.h has since 6.7; the headers that homing is built with may be older.
inline constexpr std::uint64_t page_is_of_file = 1 << 2;
inline constexpr std::uint64_t page_is_present = 1 << 3;
inline constexpr std::uint64_t page_is_zero_page = 1 << 5;
inline constexpr std::uint64_t page_is_huge = 1 << 6;

/// The first pages in the range, one after the other, that are all of `wanted` and none of `unwanted`; an
/// empty range where there are none, nothing where the kernel cannot be asked. `pagemap`: /proc/self/pagemap,
/// opened; the range is page-aligned. `most_pages`: the search ends with so many; 0: with the range.
inline std::optional<Range> first_pages(int pagemap, Range range, std::uint64_t wanted,
                                        std::uint64_t unwanted, std::uint64_t most_pages = 0) noexcept {
    struct {
        std::uint64_t start, end, categories;
    } found = {};
    struct {
        std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
        std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
    } scan = {};
    scan.size = sizeof scan;
    scan.start = range.begin;
    scan.end = range.end;
    scan.vec = reinterpret_cast<std::uint64_t>(&found);
    scan.vec_len = 1;
    scan.max_pages = most_pages;
    scan.category_inverted = unwanted;
    scan.category_mask = wanted | unwanted;
    scan.return_mask = wanted;
    const long regions = raw::call(SYS_ioctl, pagemap, _IOWR('f', 16, decltype(scan)), &scan);
    if (regions < 0) return std::nullopt;
    if (regions == 0) return Range{range.end, range.end};
    return Range{static_cast<Address>(found.start), static_cast<Address>(found.end)};
}

} // namespace homing
