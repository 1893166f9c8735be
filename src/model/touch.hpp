// One observed touch of an area.
#pragma once

#include "base/pages.hpp"

#include <cstdint>

namespace homing::model {

/// Where the first line of cache ends in a page of 4 KiB, in pages. Of a larger granule it is a small part,
/// too.
inline constexpr float first_line = static_cast<float>(cache_line_bytes) / 4096;
/// A place in a page behind which nothing begins.
inline constexpr float last_byte = 1 - 1e-4F;

struct Touch {
    std::uint64_t page = 0;   ///< granule of the area, from 0
    std::uint32_t thread = 0; ///< of the team
    std::uint32_t age = 0;    ///< outer iterations that have passed since
    bool write = false;
    /// Which byte of the page, in pages from its begin, in [0, 1); negative: not known. Of a page that two
    /// blocks share it tells whose part was touched.
    float within = -1;

    /// Is it of the page's first line, where a thread begins that sweeps over the page?
    bool begins_page() const noexcept { return within >= 0 && within < first_line; }
    /// Where it lies among the pages of the area; of an unknown byte, the page's middle.
    double at() const noexcept {
        return static_cast<double>(page) + (within < 0 ? .5 : static_cast<double>(within));
    }
};

} // namespace homing::model
