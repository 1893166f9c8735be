// Which of many ranges an address lies in.
#pragma once

#include "base/pages.hpp"

#include <algorithm>
#include <functional>
#include <ranges>

namespace homing {

/// Of items whose ranges ascend and are disjoint, the one whose range an address lies in; null: none does.
/// range_of: of an item. O(log items).
template <std::ranges::random_access_range Items, class RangeOf>
auto* find_range(Items& items, Address address, RangeOf range_of) noexcept {
    const auto behind = std::ranges::upper_bound(
        items, address, {}, [&](const auto& item) { return std::invoke(range_of, item).begin; });
    if (behind == std::ranges::begin(items)) return static_cast<decltype(&*behind)>(nullptr);
    auto* const before = &*(behind - 1);
    return std::invoke(range_of, *before).contains(address) ? before : nullptr;
}

} // namespace homing
