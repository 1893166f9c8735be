#include "model/guard.hpp"
#include "model/tuning.hpp"

#include <algorithm>
#include <cmath>

namespace homing::policy {

void Guard::reserve(std::size_t count) {
    if (accounts_.size() < count) accounts_.resize(count);
}

void Guard::accumulate(AreaId area, double excess_ns) {
    if (!std::isfinite(excess_ns)) return;
    reserve(std::size_t{area} + 1);
    Account& account = accounts_[area];
    account.remote_ns = std::max(account.remote_ns + excess_ns, 0.0);
}

double Guard::lacking_ns(AreaId area, std::uint64_t pages, std::uint64_t calls,
                         std::uint64_t pages_of_area) const {
    if (pages == 0) return 0;
    const Account account = area < accounts_.size() ? accounts_[area] : Account{};
    const bool first = account.moved + pages <= pages_of_area;
    const double price = costs_.move_ns(pages, calls) / (first ? model::tuning::advance : 1);
    return std::max(price - account.remote_ns, 0.0);
}

void Guard::moved(AreaId area, std::uint64_t pages, std::uint64_t calls, bool whole) {
    reserve(std::size_t{area} + 1);
    Account& account = accounts_[area];
    const double cost = costs_.move_ns(pages, calls);
    account.moved += pages;
    account.remote_ns = whole ? 0.0 : std::max(account.remote_ns - cost, 0.0);
}

} // namespace homing::policy
