// Page arithmetic: the one place that knows how addresses, pages and granules relate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unistd.h>

namespace homing {

using Address = std::uintptr_t;

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
inline constexpr std::size_t cache_line_bytes = 64;

/// The base page size in bytes: of this machine (4 KiB on x86-64; 4, 16 or 64 KiB on aarch64), or of a
/// simulated one.
inline constinit std::size_t stated_page_bytes = 0;
inline std::size_t page_bytes() noexcept {
    static const std::size_t bytes =
        stated_page_bytes ? stated_page_bytes : static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

constexpr Address align_down(Address address, std::size_t unit) noexcept {
    return address & ~(Address{unit} - 1);
}
constexpr Address align_up(Address address, std::size_t unit) noexcept {
    return align_down(address + unit - 1, unit);
}

/// A half-open range of addresses [begin, end).
struct Range {
    Address begin = 0;
    Address end = 0;

    constexpr std::size_t bytes() const noexcept { return end > begin ? end - begin : 0; }
    constexpr bool empty() const noexcept { return end <= begin; }
    constexpr bool contains(Address address) const noexcept { return address >= begin && address < end; }
    constexpr bool overlaps(Range other) const noexcept { return begin < other.end && other.begin < end; }
};

inline Range range_of(const void* memory, std::size_t bytes) noexcept {
    const auto begin = reinterpret_cast<Address>(memory);
    return {begin, begin + bytes};
}

/// The whole pages inside a range: memory that no neighbour shares.
inline Range whole_pages(Range range) noexcept {
    const Range inner{align_up(range.begin, page_bytes()), align_down(range.end, page_bytes())};
    return inner.empty() ? Range{inner.begin, inner.begin} : inner;
}

/// The pages whose middle lies in the range: of ranges that do not overlap, each page is at most one's.
inline Range pages_by_middle(Range range) noexcept {
    const Address middle = page_bytes() / 2;
    const Range inner{align_down(range.begin + middle, page_bytes()),
                      align_up(range.end < middle ? 0 : range.end - middle, page_bytes())};
    return inner.empty() ? Range{inner.begin, inner.begin} : inner;
}

/// The pages that a range lies in, those at its ends with what neighbours have of them.
inline Range pages_of(Range range) noexcept {
    return {align_down(range.begin, page_bytes()), align_up(range.end, page_bytes())};
}

} // namespace homing
