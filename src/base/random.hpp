// Numbers that look random and are the same in every run: spread, not secrecy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace homing {

/// What SplitMix64 (Steele, Lea, Flood 2014) adds for each number.
inline constexpr std::uint64_t splitmix_step = 0x9e3779b97f4a7c15u;

/// The number of SplitMix64 whose state is `state`: a mixing of all bits.
constexpr std::uint64_t mixed(std::uint64_t state) noexcept {
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    return state ^ (state >> 31);
}

/// The place of a key in a table of 2^bits places: the upper bits of a product, which depend on all of the
/// key (Knuth, The Art of Computer Programming, volume 3, section 6.4).
constexpr std::size_t table_place(std::uint64_t key, unsigned bits) noexcept {
    return static_cast<std::size_t>(key * splitmix_step >> (64 - bits));
}

/// In [0, 1), from all 64 bits.
constexpr double fraction_of(std::uint64_t bits) noexcept {
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// A page in each of `count` even parts of so many, other ones in each iteration. (Not at even distances:
/// cyclic owners would all look like one.)
inline std::vector<std::uint64_t> even_pages(std::uint64_t pages, std::uint64_t count,
                                             std::uint32_t iteration) {
    count = std::min(pages, count);
    std::vector<std::uint64_t> even;
    for (std::uint64_t i = 0; i < count; ++i) {
        const double within = fraction_of(mixed((i + 1 + std::uint64_t{iteration} * count) * splitmix_step));
        const double at = (static_cast<double>(i) + within) / static_cast<double>(count);
        even.push_back(std::min(pages - 1, static_cast<std::uint64_t>(at * static_cast<double>(pages))));
    }
    return even;
}

} // namespace homing
