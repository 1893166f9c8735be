#include "policy/guard.hpp"

#include <algorithm>
#include <cmath>

namespace homing::policy {

void Guard::reserve(std::size_t count) {
    if (accounts_.size() < count) accounts_.resize(count, 0.0);
}

void Guard::accumulate(AreaId area, double excess_ns) {
    if (!std::isfinite(excess_ns)) return;
    reserve(std::size_t{area} + 1);
    accounts_[area] = std::max(accounts_[area] + excess_ns, 0.0);
}

bool Guard::permits(AreaId area, std::uint64_t pages, std::uint64_t calls) const {
    return pages == 0 || accumulated_ns(area) >= costs_.move_ns(pages, calls);
}

std::uint64_t Guard::affordable_pages(AreaId area) const {
    const double left = accumulated_ns(area) - costs_.move_ns(0, 1);
    if (left < 0) return 0;
    if (costs_.move_page_us <= 0) return ~std::uint64_t{0};
    const double pages = left / (1e3 * costs_.move_page_us);
    if (pages >= 9e18) return ~std::uint64_t{0};
    auto whole = static_cast<std::uint64_t>(pages);
    while (whole > 0 && !permits(area, whole))
        --whole; // the division may round up
    return whole;
}

void Guard::moved(AreaId area, std::uint64_t pages, std::uint64_t calls, bool whole) {
    reserve(std::size_t{area} + 1);
    const double cost = costs_.move_ns(pages, calls);
    moved_ns_ += cost;
    accounts_[area] = whole ? 0.0 : std::max(accounts_[area] - cost, 0.0);
}

double Guard::accumulated_ns(AreaId area) const { return area < accounts_.size() ? accounts_[area] : 0.0; }

void Guard::forget(AreaId area) {
    if (area < accounts_.size()) accounts_[area] = 0.0;
}

} // namespace homing::policy
